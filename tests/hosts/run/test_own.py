"""Whose ranks `doctor run` judges and ends: the command's own, whatever else runs on the hosts."""

import contextlib
import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from tests.hosts.run.test_torchrun import give_logins
from tests.lab import Lab
from tests.support.cases import cases, from_cases
from tests.support.command import relays
from tests.support.injob import environment
from tests.support.paths import ROOT

pytestmark = pytest.mark.slow
PROGRAM = [sys.executable, str(ROOT / "tests/support/command_job.py")]
NOBODY = ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups")
LOOP = from_cases(__file__, "LOOP", str)
HERE = "env $given RANK=0 $program & ssh -F $config node2 env $given RANK=1 $program & wait"
SLEEPS = "echo preparing the data; sleep 45; echo prepared"


def given(lab: Lab, port: int, **more: str) -> dict[str, str]:
    """The variables of each rank of a job of two."""
    job = {"WORLD_SIZE": "2", "MASTER_ADDR": lab.hosts[0].address, "MASTER_PORT": str(port), **more}
    return {name: value for name, value in environment(**job).items() if name != "PATH"}


def script(text: str, config: str, variables: dict[str, str]) -> list[str]:
    words = " ".join(f"{name}={value}" for name, value in variables.items())
    values = {"hosts": "node1 node2", "config": config, "given": words, "program": shlex.join(PROGRAM)}
    head = "".join(f"{name}={shlex.quote(value)}\n" for name, value in values.items())
    return ["sh", "-c", head + text]


@contextlib.contextmanager
def others(
    lab: Lab, port: int, before: Sequence[str], **more: str
) -> Iterator[list[subprocess.Popen[bytes]]]:
    """A job of somebody else on the same two hosts."""
    ranks = []
    for rank, host in enumerate(lab.hosts[:2]):
        host.dirty = True
        words = ["env", *(f"{k}={v}" for k, v in given(lab, port, **more).items()), f"RANK={rank}"]
        ranks.append(subprocess.Popen(host.enter([*before, *words, *PROGRAM]), stdout=subprocess.DEVNULL))
    try:
        time.sleep(5)
        assert [each.poll() for each in ranks] == [None, None]
        yield ranks
        assert [each.poll() for each in ranks] == [None, None], "a rank of others was ended"
    finally:
        for each in ranks:
            each.kill()
            each.wait()


def doctor_run(config: str, *options: str) -> list[str]:
    run = [sys.executable, "-m", "doctor", "run", "--ssh-config", config, "node[1-2]", "--no-preflight"]
    return [*run, "--stall", "3", "--on-hang", "end", "--json", "run.json", *options, "--"]


@pytest.mark.parametrize("before", [(), NOBODY], ids=["same user", "another user"])
def test_a_job_of_others_that_hangs_ends_no_command(lab: Lab, tmp_path: Path, before: Sequence[str]) -> None:
    words = doctor_run(
        str(lab.ssh_config), "--notify", f"cat >> {tmp_path}/told; echo $DOCTOR_SUMMARY >> {tmp_path}/told"
    )
    with others(lab, 29500, before, FAULT="sleep", AT="2"):
        done = lab.run([*words, "sh", "-c", SLEEPS], cwd=tmp_path, timeout=120)
    assert done.returncode == 0, done.stderr
    assert not (tmp_path / "told").exists()
    for text in (done.stderr, (tmp_path / "run.json").read_text()):
        assert "rank 1" not in text


def test_a_silent_job_is_not_ended_because_another_one_hangs(lab: Lab, tmp_path: Path) -> None:
    own = script(LOOP, str(lab.ssh_config), given(lab, 29544, FAULT="silent", STEPS="60", EACH="0.6"))
    own[-1] = own[-1].replace("hosts='node1 node2'", "hosts=$(echo {hosts} | tr , ' ')")
    with others(lab, 29500, NOBODY, FAULT="sleep", AT="2"):
        done = lab.run([*doctor_run(str(lab.ssh_config)), *own], cwd=tmp_path, timeout=180)
    assert done.returncode == 0, done.stderr
    assert "rank" not in done.stderr.replace("ranks", "")


@cases
def test_an_own_hang_is_ended_beside_a_job_of_others(
    lab: Lab, tmp_path: Path, before: Sequence[str], port: int
) -> None:
    mark = f"mark-{uuid.uuid4()}"
    own = script(LOOP, str(lab.ssh_config), given(lab, 29655, FAULT="sleep", MARK=mark))
    with others(lab, port, before, STEPS="100000"):
        done = lab.run([*doctor_run(str(lab.ssh_config)), *own], cwd=tmp_path, timeout=240)
    assert done.returncode == 75, done.stderr
    assert "doctor: rank 1 on node2" in done.stderr
    (attempt,) = json.loads((tmp_path / "run.json").read_text())["around"]["attempts"]
    left = [each.split(" still runs; to end it: ") for each in attempt["elsewhere"]]
    assert {who for who, _ in left} <= {"rank 0 on node1", "rank 1 on node2"}
    assert len(relays(mark)) == len(left), done.stderr
    for _, line in left:
        assert lab.run(["sh", "-c", line]).returncode == 0, line
    until = time.monotonic() + 20
    while relays(mark) and time.monotonic() < until:
        time.sleep(0.1)
    assert not relays(mark)


def test_a_command_in_a_container_owns_what_it_started_and_no_more(lab: Lab) -> None:
    """Doctor has a PID namespace of its own on one of the hosts: there, others have the same PIDs."""
    host, mark = lab.hosts[0], f"mark-{uuid.uuid4()}"
    config = give_logins(lab, host)
    own = script(HERE, config, given(lab, 29656, FAULT="sleep", MARK=mark))
    inside = ["unshare", "--pid", "--fork", "--mount-proc", "env", "-C", "/tmp"]
    busy = "for n in $(seq 150); do sleep 40 & done; wait"
    with others(lab, 29500, (), FAULT="sleep", AT="2"):
        for words, code in ((["bash", "-c", busy], 0), (own, 75)):
            line = host.enter([*inside, *doctor_run(config), *words])
            env = environment(HOME="/root")
            done = subprocess.run(line, env=env, capture_output=True, text=True, timeout=240, check=False)
            assert done.returncode == code, done.stderr
            assert ("rank 1 on node2" in done.stderr) == (code == 75), done.stderr
    for pid in relays(mark):
        os.kill(pid, signal.SIGKILL)


@pytest.mark.skipif(shutil.which("mpirun") is None, reason="it needs mpirun")
def test_what_mpirun_started_on_other_hosts_is_the_commands(lab: Lab, tmp_path: Path) -> None:
    mark = f"mark-{uuid.uuid4()}"
    variables = given(lab, 29657, FAULT="sleep", MARK=mark)
    words = ["mpirun", "--allow-run-as-root", "--mca", "plm_rsh_agent", f"ssh -F {lab.ssh_config}"]
    words += ["--host", "node1:1,node2:1", "-np", "2"]
    words += [word for name in variables if name not in ("HOME", "WORLD_SIZE") for word in ("-x", name)]
    line = ["env", *(f"{k}={v}" for k, v in variables.items() if k != "HOME"), *words, *PROGRAM]
    with others(lab, 29500, NOBODY, FAULT="sleep", AT="2"):
        done = lab.run([*doctor_run(str(lab.ssh_config)), *line], cwd=tmp_path, timeout=240)
    assert done.returncode == 75, done.stderr
    assert "The job waits for rank 1 on node2" in done.stderr
    assert not relays(mark)
