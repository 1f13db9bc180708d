"""Hosts reached through Slurm: one srun for all of them, from inside an sbatch script of a real Slurm."""

import json
import re
import shlex
from pathlib import Path
from typing import Any

import pytest

from tests.lab.machine import PATH
from tests.lab.slurm import Slurm
from tests.lab.slurmjob import Job, environment, submit
from tests.support.cases import cases, from_cases
from tests.support.commands import doctor

ALL = ["node1", "node2", "node3", "node4"]
OTHERS = ["node1", "node2", "node4"]


def report(job: Job) -> dict[str, Any]:
    assert job.ended() == 0, job.output
    assert "Traceback" not in job.output
    found: dict[str, Any] = json.loads(job.file("report"))
    return found


def check(*arguments: str) -> str:
    """The command as a line of a script; the exit code goes to the file `code`."""
    words = shlex.join(["doctor", "check", *arguments])
    return f"{words} --json $JOB/report --save $JOB/recording; echo $? >$JOB/code\n"


def unreachable(found: dict[str, Any]) -> dict[str, Any]:
    (finding,) = [each for each in found["findings"] if each["check"] == "host-unreachable"]
    assert isinstance(finding, dict)
    return finding


def faults(found: dict[str, Any]) -> dict[str, list[str]]:
    return {each["check"]: each["hosts"] for each in found["findings"] if each["status"] in ("fail", "crash")}


def test_every_node_answers_once_and_nothing_is_left(slurm: Slurm) -> None:
    before = {host.name: host.snapshot() for host in slurm.lab}
    options = ("--ntasks-per-node=2", "--cpus-per-task=2", "--export=ALL,SLURM_CPU_BIND=map_cpu:77")
    job = submit(slurm, check(), *options)
    found = report(job)
    assert (job.file("code"), faults(found)) == ("0\n", {}), job.output
    assert found["run"]["transport"] == "srun"
    assert [each["name"] for each in found["hosts"] if each["status"] == "healthy"] == ALL
    assert "8 ranks (2 a host, slurm)" in job.output
    heard = json.loads(job.file("recording"))["heard"]
    assert sorted(heard) == ALL
    for name, each in heard.items():
        assert f"hostname:{name}" in each["captures"]["identity"]["stdout"].split()[0]
    slurm.await_nodes()
    for host in slurm.lab:
        left = host.leftovers(before[host.name])
        assert not left.ports
        assert not [each for each in left.processes if "slurmd" not in each.command], left


def test_a_dead_slurmd_takes_out_its_host_only(slurm: Slurm) -> None:
    slurm.stop_node(slurm.lab["node3"])
    job = submit(slurm, check("--need-hosts", "3", "--healthy-hosts", "healthy"), "--no-kill")
    found = report(job)
    assert (job.file("code"), faults(found)) == ("0\n", {"host-unreachable": ["node3"]}), job.output
    assert [each["name"] for each in found["hosts"] if each["status"] == "healthy"] == OTHERS
    assert unreachable(found)["expected"] == "a node on which Slurm runs a step"
    assert "3 healthy hosts remain, 3 are needed: go." in job.output


def test_what_slurm_says_of_a_node_is_the_reason(slurm: Slurm) -> None:
    """Such a node is not even tried."""
    down = "scontrol update nodename=node3 state=down reason='bad fan'\n"
    job = submit(slurm, down + check(), "--no-kill")
    found = report(job)
    assert (job.file("code"), faults(found)) == ("1\n", {"host-unreachable": ["node3"]}), job.output
    assert "Slurm reports the node as DOWN" in unreachable(found)["summary"]
    assert "bad fan" in unreachable(found)["summary"]


def test_a_node_that_came_back_is_no_longer_of_the_job(slurm: Slurm) -> None:
    """Otherwise srun would refuse the step for all nodes."""
    failed = "scontrol update nodename=node3 state=down reason='bad fan'\n"
    back = """scontrol update nodename=node3 state=resume
        for _ in $(seq 100); do scontrol show node node3 | grep -q NOT_RESPONDING || break; sleep 0.3; done
    """
    job = submit(slurm, failed + back + check(), "--no-kill")
    found = report(job)
    assert (job.file("code"), faults(found)) == ("1\n", {"host-unreachable": ["node3"]}), job.output
    assert "Slurm has taken the node out of the job" in unreachable(found)["summary"]
    assert [each["name"] for each in found["hosts"] if each["status"] == "healthy"] == OTHERS


def test_an_ended_allocation_blames_no_host(slurm: Slurm) -> None:
    job = submit(slurm, "export SLURM_JOB_ID=999999\n" + check())
    found = report(job)
    assert job.file("code") == "1\n"
    assert faults(found) == {"host-unreachable": []}, job.output
    assert "srun cannot enter the allocation" in unreachable(found)["summary"]


def test_suggested_commands_work_on_the_login_node(slurm: Slurm) -> None:
    """Where the job was submitted, no variable says which allocation srun is to use."""
    slurm.lab["node2"].shm("16m")
    job = submit(slurm, "doctor check -v; echo examined; sleep 600\n", nodes=2)
    job.await_word("examined")
    said = " ".join(job.output.split())
    lines = dict.fromkeys(re.findall(r"SLURM_JOB_ID=\d+ doctor [^:;]*? --transport srun", said))
    assert any("--only shm-small" in line for line in lines), job.output
    asked = f"SLURM_JOB_ID={job.number} doctor {{}} 'node[1-2]' --transport srun"
    told = {
        **{line: 1 for line in lines if "shm-small" in line},
        **{asked.format(word): 3 for word in ("hang", "slow", "logs")},
    }
    here = environment({"PATH": f"{slurm.lab.directory}/shared/bin:{PATH}"})
    try:
        for line, code in told.items():
            done = slurm.run(["sh", "-c", line], env=here)
            assert done.returncode == code, f"{line}: {done.stdout}{done.stderr}"
        bare = slurm.run(["sh", "-c", "doctor hang 'node[1-2]' --transport srun"], env=here)
        assert (bare.returncode, "put SLURM_JOB_ID=NUMBER" in bare.stderr) == (2, True)
    finally:
        job.cancel()


@pytest.fixture
def allocation(tmp_path: Path) -> dict[str, str]:
    """An environment as in a job, with an srun that must not be called."""
    srun = tmp_path / "srun"
    srun.write_text(f"#!/bin/sh\n: >{tmp_path}/called\nexit 1\n")
    srun.chmod(0o755)
    return {
        "SLURM_JOB_ID": "7",
        "SLURM_JOB_NODELIST": "cn[01-02]",
        "PATH": f"{tmp_path}:/usr/bin:/bin",
    }


@cases
def test_srun_is_refused_where_it_cannot_work(
    arguments: tuple[str, ...],
    change: dict[str, str],
    words: list[str],
    allocation: dict[str, str],
    tmp_path: Path,
) -> None:
    ran = doctor("check", *arguments, "--transport", "srun", env={**allocation, **change})
    assert (ran.returncode, ran.stdout) == (2, ""), ran.stdout
    for word in words:
        assert word in ran.stderr
    assert not (tmp_path / "called").exists()


def test_an_ssh_option_selects_ssh_inside_an_allocation(allocation: dict[str, str], tmp_path: Path) -> None:
    ran = doctor("check", "--user", "me", "--connect-timeout", "0.5", "--json", "-", env=allocation)
    assert json.loads(ran.stdout)["run"]["transport"] == "ssh"
    assert not (tmp_path / "called").exists()


FLOODING = from_cases(__file__, "FLOODING", str)


@pytest.mark.long
def test_a_node_that_floods_costs_the_others_nothing(slurm: Slurm) -> None:
    for host in slurm.lab:
        host.write("/opt/flooding/python3", FLOODING, 0o755)
    job = submit(slurm, check("--python", "/opt/flooding/python3"))
    found = report(job)
    assert [each["name"] for each in found["hosts"] if each["status"] == "healthy"] == OTHERS, job.output
    assert "node3: it printed more than 200 lines" in " ".join(job.output.split())
