"""`--in-job` on real hosts: every rank of a job of mpirun or torchrun ends with the same exit code.

mpirun runs on a machine outside the job, and starts its ranks over SSH.
"""

import random
import re
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from doctor.exam.in_job.rank_env import read_job_rank
from doctor.job.launch.launchers.mpirun import TRANSPORTS
from tests.lab import Host, Lab
from tests.lab.controller import REPOSITORY
from tests.lab.needs import without
from tests.lab.processes import command, processes
from tests.support.headlines import failures, headline
from tests.support.injob import JOINED, PORT, await_true, environment, mpirun, pid_of, torchrun
from tests.support.injob_attacks import STRANGER

pytestmark = pytest.mark.skipif(without("mpirun"), reason="needs the program 'mpirun'")
SHM = ("check", "--exam", "host", "--only", "shm-*")
ALL = range(6)


@pytest.fixture
def three(lab4: Lab) -> Iterator[Lab]:
    yield lab4
    lab4.reset()


def plain(text: str) -> str:
    """mpirun gives ranks a terminal."""
    return re.sub(r"\x1b\[[0-9;]*m", "", text).replace("\r", "")


def test_mpirun_healthy(three: Lab) -> None:
    hosts = three.hosts[:3]
    before = [host.snapshot() for host in hosts]
    with mpirun(three, hosts, 2, "check") as job:
        codes = job.wait(ALL)
        text = plain(job.text)
        assert codes == dict.fromkeys(ALL, 0), text
        assert "3 hosts · 6 ranks (2 a host, the running job)" in text
        assert text.count("Healthy: node[1-3].") == 1, "one rank prints"
        assert "WARN" not in text
        assert "FAIL" not in text
        assert "proved rank 0" not in text, "mpirun gives its ranks a secret"
        job.starts[0].wait(60)
    for host, was in zip(hosts, before, strict=True):  # sshd ends a little later than the session of mpirun
        host.await_that(lambda host=host, was=was: not host.leftovers(was), "clean end")  # type: ignore[misc]


def test_mpirun_a_fault_on_one_host_ends_every_rank_alike(three: Lab) -> None:
    three["node2"].shm("16m")
    with mpirun(three, three.hosts[:3], 2, *SHM) as job:
        codes = job.wait(ALL)
        text = plain(job.text)
    assert codes == dict.fromkeys(ALL, 1), text
    assert headline(text, "FAIL  node2", "shm-small"), text
    assert failures(text) == 1, text


def test_mpirun_a_stopped_rank_is_named_on_its_host(three: Lab) -> None:
    """Rank 3 is the second rank on node2; the others wait for it only for the given time."""
    others = [rank for rank in ALL if rank != 3]
    with mpirun(three, three.hosts[:3], 2, *SHM, "--connect-timeout", "20", STOP="3") as job:
        codes = job.wait(others)
        text = plain(job.text)
    assert codes == dict.fromkeys(others, 1), text
    assert headline(text, "FAIL  node2", "host-unreachable"), text
    assert re.search(r"rank 3 \(pid \d+\) never came within 20 s: it is stopped", text), text
    assert failures(text) == 1, text


@pytest.mark.long
def test_mpirun_the_first_rank_of_a_host_stops_after_it_joined(three: Lab) -> None:
    """Rank 2 would run node2's programs; rank 5 is held back until rank 2 is stopped."""
    three["node3"].do("touch /run/held")
    others = [rank for rank in ALL if rank != 2]
    with mpirun(three, three.hosts[:3], 2, *SHM, "-v", HOLD="5") as job:
        await_true(lambda: f"rank 2 {JOINED}" in job.text, lambda: job.text)
        pid = pid_of(three["node2"], 2)
        three["node2"].do('kill -STOP "$1"', str(pid))
        three["node3"].do("rm /run/held")
        codes = job.wait(others)
        text = plain(job.text)
    assert codes == dict.fromkeys(others, 1), text
    assert re.search(rf"rank 2 \(pid {pid}\) is stopped", text), text
    assert headline(text, "FAIL  node2", "host-unreachable"), text
    assert failures(text) == 1, text


def test_mpirun_trains(three: Lab) -> None:
    with mpirun(three, three.hosts[:2], 1, "preflight", "--python", sys.executable) as job:
        codes = job.wait(range(2))
        text = plain(job.text)
    assert codes == {0: 0, 1: 0}, text
    assert re.search(r"Smoke  2 ranks \(2 hosts × 1\), torch \S+ over gloo", text)
    assert "30 steps, loss" in text


def test_mpirun_shows_its_secret_to_nobody(three: Lab) -> None:
    """The variable that authenticates rank 0 is in no command line, because other users can read command
    lines.
    """
    node = three["node2"]
    node.do("touch /run/held")
    with mpirun(three, three.hosts[:2], 1, *SHM, HOLD="1") as job:
        await_true(lambda: TRANSPORTS in environments(node), lambda: job.text)
        secret = environments(node)[TRANSPORTS]
        lines = "\n".join(map(command, psutil.process_iter()))
        node.do("rm /run/held")
        assert job.wait(range(2)) == {0: 0, 1: 0}
    assert "orted" in lines
    assert len(secret) > 30
    assert secret not in lines


def environments(host: Host) -> dict[str, str]:
    """The variables of all processes there."""
    found: dict[str, str] = {}
    for process in processes(host.pid):
        with suppress(psutil.NoSuchProcess):
            found.update(process.environ())
    return found


@pytest.mark.long
def test_nothing_is_left_of_a_look_that_was_killed(three: Lab) -> None:
    """mpirun leaves files of its own."""
    hosts = three.hosts[:2]
    drawn = random.Random(53)
    for _ in range(8):
        with mpirun(three, hosts, 1, *drawn.choice([("hang", "--for", "9"), ("facts",), ("slow",)])):
            time.sleep(drawn.uniform(0.5, 5.0))
    await_true(lambda: not left(hosts), lambda: str(left(hosts)))


def left(hosts: Sequence[Host]) -> list[str]:
    """The processes of these hosts that doctor is, or has started."""
    lines = [command(process) for host in hosts for process in processes(host.pid)]
    return [line for line in lines if "-m doctor" in line or "begin(bytes" in line or "sh -s" in line]


@pytest.mark.long
def test_torchrun_healthy(three: Lab) -> None:
    """Its own store holds MASTER_PORT, which does not count as a port in use."""
    with torchrun(three.hosts[:3], 2, "check") as job:
        codes = job.wait(ALL)
        text = plain(job.text)
    assert codes == dict.fromkeys(ALL, 0), text
    assert "Healthy: node[1-3]." in text
    assert "WARN" not in text
    assert "proved rank 0 to the ranks on node[2-3]" in " ".join(text.split())


@pytest.mark.long
@pytest.mark.parametrize("place", [0, 1])
def test_torchrun_a_false_head_on_another_host_runs_nothing(place: int, three: Lab, tmp_path: Path) -> None:
    """Without a key, the rank there cannot distinguish the two; it notices that there are two. The false one
    is where ranks look first, or after the true one: nobody is accused, and all ranks end alike.
    """
    head, node = three["node1"], three["node2"]
    variables = {"MASTER_ADDR": head.address, "MASTER_PORT": str(PORT), "RANK": "1", "WORLD_SIZE": "2"}
    elastic = {"TORCHELASTIC_RUN_ID": "none", "TORCHELASTIC_RESTART_COUNT": "0"}
    seat = read_job_rank({**variables, **elastic})
    false, true = seat.ports[place], seat.ports[1 - place]
    ran = tmp_path / "ran"
    attack = [sys.executable, "-m", "tests.support.injob_attacks", str(false), seat.token.hex(), str(ran)]
    node.do("touch /run/held")
    with subprocess.Popen(
        head.enter(attack), cwd=REPOSITORY, env=environment(), stdout=subprocess.PIPE
    ) as attacker:
        try:
            assert attacker.stdout is not None
            assert attacker.stdout.readline() == b"ready\n"
            with torchrun(three.hosts[:2], 1, *SHM, "--connect-timeout", "20", HOLD="1") as job:
                await_true(lambda: listens(head, true), lambda: job.text)
                node.do("rm /run/held")
                codes = job.wait(range(2))
                text = plain(job.text)
        finally:
            attacker.kill()
    assert codes == {0: 3, 1: 3}, text
    assert not ran.exists()
    assert failures(text) == 0, text
    said = " ".join(text.split())
    held = f"port {false} of node1, where ranks look for rank 0, is held by the user with uid {STRANGER}, "
    assert held + ("whose program claims to be rank 0" if place else "whom they may have met instead") in said
    assert "Give all ranks a DOCTOR_JOB_KEY" in said
    assert "two processes claim to be rank 0" in said


def listens(host: Host, port: int) -> bool:
    found = subprocess.run(
        host.enter(["ss", "-ltnH", f"sport = :{port}"]), capture_output=True, text=True, check=True
    )
    return str(port) in found.stdout


@pytest.mark.long
def test_torchrun_a_stopped_rank_is_named_on_its_host(three: Lab) -> None:
    others = [rank for rank in ALL if rank != 3]
    with torchrun(three.hosts[:3], 2, *SHM, "--connect-timeout", "40", STOP="3") as job:
        codes = job.wait(others)
        text = plain(job.text)
    assert codes == dict.fromkeys(others, 1), text
    assert headline(text, "FAIL  node2", "host-unreachable"), text
    assert re.search(r"rank 3 \(pid \d+\) never came within 40 s: it is stopped", text), text
