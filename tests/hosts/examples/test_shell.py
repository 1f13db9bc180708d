"""`examples/shell/launch.sh` on real hosts: it trains on healthy hosts only."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.lab import Lab
from tests.support.cases import from_cases
from tests.support.paths import ROOT

LAUNCHER = ROOT / "examples/shell/launch.sh"
TRAIN = from_cases(__file__, "TRAIN", str)
Launch = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def launch(lab: Lab, tmp_path: Path) -> Launch:
    """`launch(need, argument..., smoke=)` on the controller, for a training script that is on every host."""
    for host in lab:
        host.write("/srv/train.py", TRAIN)
    desk = tmp_path / "desk"
    desk.mkdir()
    (desk / "hosts.txt").write_text("".join(f"{name} slots=2\n" for name in lab.names))
    command = desk / "doctor"
    ours = f'exec {sys.executable} -m doctor "$command" --ssh-config {lab.ssh_config} "$@" $MORE'
    command.write_text(f"#!/bin/sh\ncommand=$1\nshift\n{ours}\n")
    command.chmod(0o755)

    def start(need: int, *arguments: str, smoke: bool = False) -> subprocess.CompletedProcess[str]:
        settings = {
            "HOSTFILE": str(desk / "hosts.txt"),
            "NEED": str(need),
            "BACKEND": "gloo",
            "PYTHON": sys.executable,
            "RUNS": str(desk / "runs"),
            "LOGS": str(desk / "logs"),
            "MORE": "" if smoke else "--no-smoke",
            "SSH": f"ssh -F {lab.ssh_config}",
            "PATH": f"{desk}:{os.environ['PATH']}",
        }
        argv = ["bash", str(LAUNCHER), "/srv/train.py", *arguments]
        return lab.run(argv, cwd="/", env=settings, timeout=300)

    return start


def test_it_trains_on_the_healthy_hosts(launch: Launch, lab: Lab, tmp_path: Path) -> None:
    """The head is faulty, and one host more than is needed is healthy."""
    lab["node1"].shm("16m")
    ran = launch(2, smoke=True)
    assert (ran.returncode, ran.stdout) == (0, ""), ran.stderr + logs(tmp_path)
    address = lab["node2"].spec.address
    for number, name in enumerate(("node2", "node3")):
        said = (tmp_path / f"desk/logs/{name}.log").read_text().splitlines()
        said = sorted(line for line in said if line.startswith("rank "))
        ranks = (2 * number, 2 * number + 1)
        assert said == [f"rank {rank} of 4 total 10 master {address}" for rank in ranks]
    assert sorted(path.name for path in (tmp_path / "desk/logs").iterdir()) == ["node2.log", "node3.log"]
    (report,) = (path for path in (tmp_path / "desk/runs").glob("*.json") if ".run." not in path.name)
    smoke = json.loads(report.read_bytes())["smoke"]
    assert smoke["status"] == "pass"

    before = {host.name: host.snapshot() for host in lab}
    failed = launch(2, "fails")
    assert failed.returncode == 1
    assert "a rank failed; see" in failed.stderr
    assert "on purpose" in logs(tmp_path)
    for host in lab:
        host.await_that(lambda host=host: not host.leftovers(before[host.name]).processes, "clean end")  # type: ignore[misc]

    many = launch(4)
    assert (many.returncode, many.stdout) == (1, "")
    what, where, _ = many.stderr.splitlines()
    assert what.startswith("doctor: no go: shm-small: ")
    assert where == "        On node1; 3 of 4 hosts are healthy, 4 are needed (faulty node1)."


def logs(folder: Path) -> str:
    return "".join(path.read_text() for path in (folder / "desk/logs").glob("*.log"))
