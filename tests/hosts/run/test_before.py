"""`doctor run` starts its command on the healthy hosts, or not at all."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.lab import Lab

HOSTS = "node[1-4]"
ALONE = (HOSTS, "--exam", "host", "--no-smoke")
PLACES = ("echo", "{hosts}", "{nnodes}", "{master_addr}", "{other}")


def around(lab: Lab, *words: str, **more: str) -> subprocess.CompletedProcess[str]:
    """`doctor run`, as a process of its own: the command gets the variables that doctor was given."""
    argv = [sys.executable, "-m", "doctor", "run", "--ssh-config", str(lab.ssh_config), *words]
    return lab.run(argv, env=more)


def test_healthy_hosts_that_are_not_needed_are_not_left_out(lab: Lab) -> None:
    done = around(lab, *ALONE, "--need-hosts", "2", "--", "echo", "all")
    assert (done.returncode, done.stdout) == (0, "all\n"), done.stderr
    done = around(lab, *ALONE, "--need-hosts", "2", "--", *PLACES)
    assert (done.returncode, done.stdout.split()[0]) == (0, "node1,node2"), done.stderr


def test_a_sick_host_does_not_take_part(lab: Lab, tmp_path: Path) -> None:
    lab["node2"].shm("64m")
    enough = (*ALONE, "--need-hosts", "3", "--report-dir", str(tmp_path / "runs"))
    done = around(lab, *enough, "--", *PLACES)
    (kept,) = (tmp_path / "runs").glob("*/preflight.txt")
    assert f"doctor: the whole pre-flight is in {kept}" in done.stderr
    assert "shm-small" in kept.read_text()
    assert (done.returncode, done.stdout) == (0, f"node1,node3,node4 3 {lab['node1'].address} {{other}}\n")
    assert done.stderr.splitlines()[-1].startswith("doctor: the exit code 0 is the job's")

    started = tmp_path / "started"
    done = around(lab, *enough, "--", "touch", str(started))
    assert (done.returncode, started.exists()) == (1, False)
    assert "node2 must not take part" in done.stderr
    assert f"-- env 'HOSTS={{hosts}}' touch {started}" in done.stderr
    assert done.stderr.splitlines()[-1] == "doctor: the exit code 1 is the pre-flight's."

    done = around(lab, *ALONE, "--", *PLACES)
    assert (done.returncode, done.stdout) == (1, "")
    assert "shm-small" in done.stderr
    assert "node2" in done.stderr
    assert "node3" not in done.stderr.replace("node[1,3-4]", "")


@pytest.mark.parametrize("line", [("srun", "-N2", "hostname"), ("torchrun", "--nnodes=2", "x.py")])
def test_a_launcher_of_several_hosts_needs_their_names(lab: Lab, line: tuple[str, ...]) -> None:
    done = around(lab, "--", *line)
    assert (done.returncode, done.stdout) == (2, "")
    assert f"The hosts of the command are unknown: {line[0]} starts it on several." in done.stderr
