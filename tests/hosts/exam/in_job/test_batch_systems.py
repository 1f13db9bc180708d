"""examples/pbs/doctor_in_job.sh. PBS and LSF are emulated: their commands run one on a host of the lab."""

import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from tests.lab import Lab
from tests.support.injob import environment
from tests.support.paths import ROOT

SCRIPT = str(ROOT / "examples/pbs/doctor_in_job.sh")
SYSTEMS = {"pbs_tmrsh": "PBS_NODEFILE", "blaunch": "LSB_DJOB_HOSTFILE"}
"""What runs a command on a host of the job, and the variable with the file of its hosts, one line a slot."""


def in_job(lab: Lab, folder: Path, command: str, *words: str) -> "subprocess.CompletedProcess[str]":
    cases = [f'{host.address}) shift; exec {shlex.join(host.enter([]))} "$@" ;;' for host in lab.hosts[:2]]
    there = folder / command
    there.write_text(
        "\n".join(["#!/bin/sh", 'case "$1" in', *cases, "esac", 'echo "not of this job" >&2; exit 1'])
    )
    there.chmod(0o755)
    doctor = f'#!/bin/sh\nexec {sys.executable} -m doctor "$@"\n'
    for host in lab.hosts[:2]:
        host.do('printf %s "$1" >/usr/local/bin/doctor; chmod 755 /usr/local/bin/doctor', doctor)
    hosts = folder / "hosts"
    hosts.write_text("".join(f"{host.address}\n{host.address}\n" for host in lab.hosts[:2]))
    env = environment(DOCTOR="/usr/local/bin/doctor", **{SYSTEMS[command]: str(hosts)})
    env["PATH"] = f"{folder}{os.pathsep}{env['PATH']}"
    argv = [SCRIPT, *words]
    return subprocess.run(argv, capture_output=True, text=True, timeout=120, env=env, check=False)


@pytest.mark.parametrize("command", SYSTEMS)
def test_one_rank_on_each_host_of_the_job(lab: Lab, tmp_path: Path, command: str) -> None:
    facts = in_job(lab, tmp_path, command, "facts")
    assert facts.returncode == 0, facts.stdout + facts.stderr
    assert "2 hosts reported" in facts.stdout
    lab["node2"].shm("16m")
    check = in_job(lab, tmp_path, command, "check", "--exam", "host", "--only", "shm-*")
    assert check.returncode == 1, check.stdout + check.stderr
    assert "FAIL  node2" in check.stdout
    assert "node1" not in check.stdout.partition("FAIL")[2].partition("HOST")[0]


def test_outside_of_a_job_it_says_so() -> None:
    done = subprocess.run([SCRIPT, "check"], capture_output=True, text=True, env=environment(), check=False)
    assert done.returncode != 0
    assert "this is not a job of PBS or LSF" in done.stderr
