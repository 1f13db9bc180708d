"""A job of torchrun on hosts of the lab: `doctor hang` names the rank from outside, and leaves nothing
behind.
"""

import json
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from tests.lab import Host, Lab
from tests.support.cases import from_cases
from tests.support.hang import starved
from tests.support.hang.named import culprits, suspects
from tests.support.hang.ranks import JOB
from tests.support.injob import Job, environment, torchrun_argv

pytestmark = pytest.mark.slow

FOLDER = "/tmp/hang-job"
PATIENCE = 120.0


@contextmanager
def torchrun(hosts: Sequence[Host], ranks: int, **env: str) -> Iterator[Job]:
    job = Job()
    try:
        for number, host in enumerate(hosts):
            host.dirty = True
            words = [*torchrun_argv(hosts, ranks, number), str(JOB)]
            script = f'mkdir -p {FOLDER}; mkfifo {FOLDER}/fifo; cd /; exec "$@"'
            job.start(
                host.enter(["sh", "-c", script, "job", *words]),
                environment(FOLDER=FOLDER, **env),
            )
        yield job
    finally:
        job.close()


def step(hosts: Sequence[Host], rank: int, name: str = "step") -> int:
    for host in hosts:
        with suppress(OSError, ValueError):
            return int(Path(f"/proc/{host.pid}/root{FOLDER}/{name}.{rank}").read_text())
    return -1


def until(true: Callable[[], bool], job: Job) -> None:
    end = time.monotonic() + PATIENCE
    while not true():
        assert time.monotonic() < end, job.text
        assert all(start.poll() is None for start in job.starts), job.text
        time.sleep(0.1)


@pytest.mark.main
def test_the_stopped_rank_of_a_job_over_two_hosts(lab: Lab) -> None:
    hosts = [lab["node1"], lab["node2"]]
    with torchrun(hosts, 2, FAULT="stop", VICTIM="3") as job:
        until(lambda: step(hosts, 3, "hit") == 1, job)
        time.sleep(1.0)
        before = [host.snapshot() for host in hosts]
        done = lab.doctor("hang", "node[1-3]", "--json", "-")
        assert done.returncode == 1, done.stdout + done.stderr
        said = json.loads(done.stdout)
        (culprit,) = culprits(said)
        assert (culprit["rank"], culprit["host"], culprit["cause"]) == (3, "node2", "stopped")
        assert said["hang"]["job"]["launcher"] == "torchrun"
        assert (said["hang"]["job"]["ranks"], said["hang"]["job"]["found"], said["hang"]["job"]["hosts"]) == (
            4,
            4,
            ["node1", "node2"],
        )
        assert {rank["in_collective"] for rank in said["hang"]["ranks"] if rank["rank"] != 3} == {True}
        for host, was in zip(hosts, before, strict=True):
            host.await_that(lambda host=host, was=was: not host.leftovers(was), "clean end")  # type: ignore[misc]


def test_the_connections_of_hosts_without_ss(lab: Lab) -> None:
    """The kernel is asked for them: for how long the job has stood still is known there, too."""
    hosts = [lab["node1"], lab["node2"]]
    for host in hosts:
        host.no_tool("ip", "ss")
    with torchrun(hosts, 2, FAULT="stop", VICTIM="3") as job:
        until(lambda: step(hosts, 3, "hit") == 1, job)
        time.sleep(1.0)
        done = lab.doctor("hang", "node[1-2]", "--json", "-")
    assert done.returncode == 1, done.stdout + done.stderr
    said = json.loads(done.stdout)
    (culprit,) = culprits(said)
    assert (culprit["rank"], culprit["host"], culprit["cause"]) == (3, "node2", "stopped")
    assert said["hang"]["rights"]["connections"]
    assert said["hang"]["rights"]["unread"] == []


@pytest.mark.skipif(not starved.possible(), reason="this machine does not allow limits of processors")
def test_a_host_without_processor_time_holds_nobody_up(lab: Lab) -> None:
    """Its answer is awaited for as long as --timeout allows, and late parts are reported as such."""
    hosts, seconds = [lab["node1"], lab["node2"]], 20.0
    with torchrun(hosts, 2, FAULT="stop", VICTIM="3") as job:
        until(lambda: step(hosts, 3, "hit") == 1, job)
        with starved.starved(hosts[0], 0.01):
            began = time.monotonic()
            done = lab.doctor("hang", "node[1-2]", "--timeout", f"{seconds:g}", "--for", "1", "--json", "-")
            took = time.monotonic() - began
    assert took < 3 * seconds, "what is beyond --timeout is the start and the end of the command"
    assert done.returncode == 1, done.stdout + done.stderr
    said = json.loads(done.stdout)
    (culprit,) = culprits(said)
    assert (culprit["rank"], culprit["host"], culprit["cause"]) == (3, "node2", "stopped")
    late = [*map(str, said["hosts"]), *said["hang"]["rights"]["unread"], *said["hang"]["notes"]]
    assert any("within" in each or "in time" in each for each in late), done.stdout


def test_a_job_over_two_hosts_that_moves_goes_on(lab: Lab) -> None:
    hosts = [lab["node1"], lab["node2"]]
    with torchrun(hosts, 1, FAULT="") as job:
        until(lambda: min(step(hosts, 0), step(hosts, 1)) >= 3, job)
        done = lab.doctor("hang", "node[1-2]", "--for", "1")
        assert done.returncode == 0, done.stdout + done.stderr
        after = step(hosts, 0)
        until(lambda: step(hosts, 0) > after + 10, job)


def test_hosts_without_a_job(lab: Lab) -> None:
    done = lab.doctor("hang", "node[3-4]")
    assert done.returncode == 3
    assert "No job" in done.stdout


def test_the_job_of_another_user(lab: Lab) -> None:
    """A user who may not read its variables is told so; with sudo, doctor sees everything."""
    host = lab["node1"]
    host.dirty = True
    ranks = []
    for rank in range(2):
        told = [f"RANK={rank}", "WORLD_SIZE=2", "MASTER_ADDR=node1", "MASTER_PORT=29777"]
        stop = "import os, signal, time\nif os.environ['RANK'] == '1': os.kill(os.getpid(), signal.SIGSTOP)\n"
        ranks.append(host.spawn(["env", *told, sys.executable, "-c", f"{stop}time.sleep(1000)"]))
    try:
        host.await_that(lambda: len(host.snapshot().processes) >= 2, "two ranks")
        time.sleep(0.5)
        plain = lab.doctor("hang", "node1", user="trainee")
        assert plain.returncode == 3, plain.stdout + plain.stderr
        assert "Python processes of root may be ranks" in plain.stderr
        host.grant_sudo()
        done = lab.doctor("hang", "node1", "--sudo", user="trainee")
        assert done.returncode == 3, "nobody is seen to wait for it"
        assert "rank 1 on node1" in done.stdout
        assert "as root, with Python stacks" in done.stdout
    finally:
        for each in ranks:
            each.stop()


def test_the_job_of_another_user_over_two_hosts_is_one(lab: Lab) -> None:
    """Every user may read the rendezvous on torchrun's command line."""
    hosts = [lab["node1"], lab["node2"]]
    with torchrun(hosts, 2, FAULT="stop", VICTIM="3") as job:
        until(lambda: step(hosts, 3, "hit") == 1, job)
        done = lab.doctor("hang", "node[1-2]", "--for", "1", "--json", "-", user="trainee")
        assert done.returncode == 3, done.stdout + done.stderr
        said = json.loads(done.stdout)
        assert (said["hang"]["job"]["found"], said["hang"]["job"]["hosts"]) == (4, ["node1", "node2"])
        assert [(each["host"], each["cause"]) for each in suspects(said)] == [("node2", "stopped")]


FIREWALL = from_cases(__file__, "FIREWALL", str)


def test_a_firewall_in_the_middle_of_a_job_is_found_by_check(lab: Lab, tmp_path: Path) -> None:
    """All ranks wait in the same operation, their data is lost, and --check shows why, in every format."""
    html = tmp_path / "hang.html"
    hosts = [lab["node1"], lab["node2"]]
    with torchrun(hosts, 1, FAULT="") as job:
        until(lambda: min(step(hosts, 0), step(hosts, 1)) >= 3, job)
        hosts[1].nft(FIREWALL)
        time.sleep(4.0)
        words = ("--limit", "2", "--for", "1", "--check", "--json", "-", "--html", str(html))
        done = lab.doctor("hang", "node[1-2]", *words)
        assert done.returncode == 1, done.stdout + done.stderr
        said = json.loads(done.stdout)
        assert {each["cause"] for each in culprits(said)} == {"connection lost"}
        assert {each["rank"] for each in culprits(said)} == {0, 1}
        found = {each["check"] for each in said["check"]["findings"] if each["status"] == "fail"}
        assert found & {"firewall-blocks", "port-unreachable"}, said["check"]
        assert found <= {each["check"] for each in said["findings"]}
        assert said["check"]["headline"] in said["headline"]
        assert said["headline"] in " ".join(done.stderr.split())
        assert all(each in html.read_text() for each in found)
        assert "doctor: the result of doctor check" in done.stderr
