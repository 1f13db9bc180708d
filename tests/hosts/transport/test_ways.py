"""Every command over every way that needs no scheduler: what it finds does not depend on the way.

Slurm's ways are in slurm/, `docker exec` in containers/.
"""

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest

from tests.hosts.hang.test_torchrun import step, torchrun, until
from tests.lab import Lab
from tests.lab.needs import without
from tests.support.commands import DOCTOR
from tests.support.gateways import behind_gateways
from tests.support.hang.named import culprits
from tests.support.injob import led_by_mpirun
from tests.support.kubernetes import StandIn, pod, stand_in

pytestmark = pytest.mark.slow
Run = Callable[..., "subprocess.CompletedProcess[str]"]
BY_MPIRUN = pytest.mark.skipif(without("mpirun"), reason="needs the program 'mpirun'")
PYTHON = ("--python", sys.executable)
LOG = "Traceback (most recent call last):\\n  File train.py, line 3\\nRuntimeError: the disk is gone\\n"


@pytest.fixture(params=["ssh", "openssh", "via", "pods", "nodes", pytest.param("in-job", marks=BY_MPIRUN)])
def run(request: pytest.FixtureRequest, lab: Lab, tmp_path: Path) -> Iterator[Run]:
    """Runs a command on node1 and node2."""
    if request.param == "in-job":
        yield partial(led_by_mpirun, lab, [lab["node1"], lab["node2"]])
        return
    if request.param == "via":
        behind_gateways(lab, ["node1", "node2"], ["node3", "node4"])
    if request.param not in ("pods", "nodes"):
        by = ("--via", "node[3-4]") if request.param == "via" else ("--transport", request.param)
        way = ("node[1-2]", *by)

        def by_ssh(*words: str) -> subprocess.CompletedProcess[str]:
            config = ("--ssh-config", str(lab.ssh_config)) if words[0] == "run" else ()
            return lab.doctor(*_with(words, *way, *config))

        yield by_ssh
        return
    pytest.importorskip("kubernetes")
    way = ("--pods", "msjob/train") if request.param == "pods" else ("--on-nodes", "node/node[1-2]")
    labels = {"app": "train" if request.param == "pods" else "doctor-node"}
    pods = [pod(name, labels, owner=("MSJob", "train"), node=name) for name in ("node1", "node2")]
    with stand_in(StandIn(pods, enter=lambda name: lab[name].enter([]))) as server:
        env = {**os.environ, "KUBECONFIG": str(server.config(tmp_path)), "COLUMNS": "200"}

        def by_pods(*words: str) -> subprocess.CompletedProcess[str]:
            argv = [*DOCTOR, *_with(words, *way)]
            return subprocess.run(argv, capture_output=True, text=True, env=env, timeout=200)

        yield by_pods
        assert not server.sessions, "all programs have ended"


def _with(words: tuple[str, ...], *hosts: str) -> list[str]:
    at = words.index("--") if "--" in words else len(words)
    return [*words[:at], *hosts, *words[at:]]


def test_hosts_are_examined(run: Run, lab: Lab) -> None:
    lab["node2"].shm("16m")
    done = run("check", "--only", "shm-small", "--json", "-")
    assert done.returncode == 1, done.stdout + done.stderr
    (fault,) = (each for each in json.loads(done.stdout)["findings"] if each["status"] == "fail")
    assert fault["hosts"] == ["node2"]
    facts = run("facts")
    assert facts.returncode == 0, facts.stdout + facts.stderr
    assert "2 hosts reported" in facts.stdout


@pytest.mark.parametrize("command", ["smoke", "preflight"])
def test_hosts_train(run: Run, command: str) -> None:
    done = run(command, "--steps", "4", *PYTHON)
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r"[24] ranks \(2 hosts × [12]\)", done.stdout)


@pytest.mark.parametrize("run", ["ssh", "openssh", "via", "pods", "nodes"], indirect=True)
def test_a_command_starts_behind_a_preflight(run: Run) -> None:
    done = run("run", "--no-smoke", "--", "echo", "it has begun")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "it has begun" in done.stdout


def test_logs_are_fetched(run: Run, lab: Lab) -> None:
    lab["node2"].do(f"printf '{LOG}' >/tmp/train.log")
    done = run("logs", "--path", "/tmp/train.log")
    assert done.returncode == 1, done.stdout + done.stderr
    assert "the disk is gone" in " ".join(done.stdout.split())


def test_a_job_that_moves_is_looked_at(run: Run, lab: Lab) -> None:
    hosts = [lab["node1"], lab["node2"]]
    with torchrun(hosts, 1, FAULT="") as job:
        until(lambda: min(step(hosts, 0), step(hosts, 1)) >= 3, job)
        slow = run("slow", "--for", "4", "--json", "-")
    assert slow.returncode in (0, 3), slow.stdout + slow.stderr
    assert json.loads(slow.stdout)["slow"]["job"]["ranks"] == 2


def test_a_job_that_hangs_is_looked_at(run: Run, lab: Lab) -> None:
    hosts = [lab["node1"], lab["node2"]]
    with torchrun(hosts, 1, FAULT="stop", VICTIM="1") as job:
        until(lambda: step(hosts, 1, "hit") == 1, job)
        hang = run("hang", "--json", "-")
    assert hang.returncode == 1, hang.stdout + hang.stderr
    (culprit,) = culprits(json.loads(hang.stdout))
    assert (culprit["rank"], culprit["host"], culprit["cause"]) == (1, "node2", "stopped")


@pytest.mark.parametrize("run", ["pods"], indirect=True)
def test_pods_without_devices_have_no_rank_table(run: Run) -> None:
    table = run("ranktable", "make")
    assert table.returncode == 3, table.stdout + table.stderr
    assert "its NPUs may be given to other containers" in " ".join((table.stdout + table.stderr).split())


NO_ROOM = "RuntimeError: unable to write to file </torch_1_2_3>: No space left on device (28)\n"


@pytest.mark.parametrize("way", [("--transport", "openssh"), ("--via", "node[3-4]")])
def test_a_log_is_proved_and_devices_are_asked_for(way: tuple[str, str], lab: Lab, tmp_path: Path) -> None:
    """These two name their hosts in ways of their own. Hosts without an NPU have no rank table."""
    if "--via" in way:
        behind_gateways(lab, ["node1", "node2"], ["node3", "node4"])
    lab["node2"].shm("16m")
    log = tmp_path / "train.log"
    log.write_text(NO_ROOM)
    ssh = ("--ssh-config", str(lab.ssh_config))
    proved = lab.doctor("explain", str(log), "--check", "node[1-2]", *way, *ssh)
    assert proved.returncode == 1, proved.stdout + proved.stderr
    assert "proved: shm-small fails on node2" in proved.stdout
    table = lab.doctor("ranktable", "make", "node[1-2]", *way)
    assert table.returncode == 1, table.stdout + table.stderr
    assert "node[1-2] NPU 0  there is no NPU" in table.stdout + table.stderr
