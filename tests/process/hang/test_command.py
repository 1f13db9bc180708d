"""`doctor hang` as it is typed: real ranks, the report, the exit code, and the same again from a file."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support.cases import cases
from tests.support.hang.named import culprits
from tests.support.hang.ranks import JOB, RunningJob, make_job
from tests.support.paths import ROOT

__all__ = ["make_job"]

pytestmark = pytest.mark.slow


def hang(*words: str) -> subprocess.CompletedProcess[str]:
    argv = [sys.executable, "-m", "doctor", "hang", *words]
    return subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, timeout=100)


def judged(job: RunningJob, *words: str) -> tuple[int, dict[str, Any]]:
    done = hang("--local", "--master-port", str(job.port), "--for", "1", "--json", "-", *words)
    assert not done.stderr.startswith("doctor: "), done.stderr
    said: dict[str, Any] = json.loads(done.stdout)
    return done.returncode, said


def test_a_rank_that_sleeps_is_named_and_again_from_a_file(
    make_job: Callable[..., RunningJob], tmp_path: Path
) -> None:
    job = make_job(FAULT="sleep")
    job.hangs()
    kept = tmp_path / "hang.json"
    code, said = judged(job, "--limit", "1", "--save", str(kept))
    (culprit,) = culprits(said)
    assert (code, said["hang"]["state"]) == (1, "hang")
    assert (culprit["rank"], culprit["pid"], culprit["cause"]) == (1, job.pids[1], "sleeps")
    assert culprit["hang"]["stack"][0]["source"] == "time.sleep(1000)"
    again, end = said["hang"]["commands"]
    assert again == f"doctor hang --pid {job.pids[1]} --local    # is it still there?"
    assert end.startswith(f"kill -ABRT {job.pids[1]}    # ")
    assert kept.stat().st_mode & 0o777 == 0o600
    assert "swordfish" not in kept.read_text()
    replayed = hang("--replay", str(kept), "--json", "-")
    assert (replayed.returncode, json.loads(replayed.stdout)) == (1, said), (
        "it keeps --limit and --master-port"
    )
    by_pid = hang("--replay", str(kept), "--pid", str(job.pids[0]))
    assert by_pid.returncode == 1
    assert "rank 1" in by_pid.stdout
    patient = hang("--replay", str(kept), "--limit", "60", "--json", "-")
    assert (patient.returncode, json.loads(patient.stdout)["hang"]["state"]) == (0, "waits")


def test_the_line_of_a_file_that_was_edited_since_is_not_shown(
    make_job: Callable[..., RunningJob], tmp_path: Path
) -> None:
    script = tmp_path / "train.py"
    script.write_text(JOB.read_text())
    job = make_job(world=2, script=script, FAULT="sleep")
    job.hangs()
    script.write_text(script.read_text().replace("time.sleep(1000)", "time.sleep(1)"))
    code, said = judged(job, "--limit", "1")
    (culprit,) = culprits(said)
    assert (code, culprit["rank"], culprit["cause"]) == (1, 1, "sleeps")
    assert {frame["source"] for frame in culprit["hang"]["stack"]} == {None}


@pytest.mark.long
@pytest.mark.parametrize("chain", ["irecv", "recv"])
def test_who_waits_in_a_receive_is_not_accused(make_job: Callable[..., RunningJob], chain: str) -> None:
    """As in a pipeline. gloo's worker threads are idle then, and for irecv the stack only shows `wait`."""
    job = make_job(FAULT="sleep", CHAIN=chain)
    job.hangs()
    code, said = judged(job, "--limit", "1")
    assert (code, [each["rank"] for each in culprits(said)]) == (1, [1])
    assert {rank["rank"]: rank["in_collective"] for rank in said["hang"]["ranks"]} == {
        0: True,
        1: False,
        2: True,
    }


@pytest.mark.long
def test_only_the_job_that_is_asked_for_is_looked_at(
    make_job: Callable[..., RunningJob], tmp_path: Path
) -> None:
    """A process beside it that looks like a rank costs nothing and is not kept."""
    job = make_job(world=2, FAULT="sleep")
    env = {"RANK": "0", "WORLD_SIZE": "1", "MASTER_PORT": "1", "PATH": "/usr/bin:/bin"}
    other = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(1000)"], env=env)
    try:
        job.hangs()
        kept = tmp_path / "hang.json"
        code, said = judged(job, "--limit", "1", "--save", str(kept))
        assert (code, [each["rank"] for each in culprits(said)]) == (1, [1])
        (host,) = json.loads(kept.read_text())["hosts"]
        assert {member["pid"] for member in host["members"]} == {*job.pids}
        none = hang("--local", "--pid", "1", "--for", "30")
        assert none.returncode == 3
        assert f"pid {other.pid}" in none.stdout, "jobs are listed without a look"
    finally:
        other.kill()
        other.wait()


def test_a_healthy_job_moves(make_job: Callable[..., RunningJob]) -> None:
    job = make_job(FAULT="")
    job.runs()
    code, said = judged(job)
    assert (code, said["hang"]["state"], culprits(said)) == (0, "moves", [])


@cases
def test_the_cause_is_said(fault: str, cause: str, make_job: Callable[..., RunningJob]) -> None:
    job = make_job(FAULT=fault)
    job.hangs()
    code, said = judged(job, "--limit", "1")
    assert code == 1, said
    assert [(each["rank"], each["cause"]) for each in culprits(said)] == [(1, cause)]


@cases
def test_a_given_py_spy_that_shows_nothing(
    own: str, make_job: Callable[..., RunningJob], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The job is judged without stacks, or with the installed py-spy if the file is for other hosts."""
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    job, given = make_job(world=2, FAULT="sleep"), tmp_path / "py-spy"
    header = bytearray(Path("/bin/true").read_bytes())
    if own != "another program":
        machine = {"x86_64": 62, "aarch64": 183}[os.uname().machine]
        header[18:20] = (machine if own == "does not start" else 245 - machine).to_bytes(2, "little")
        header[20:] = b""
    given.write_bytes(header)
    job.hangs()
    code, said = judged(job, "--limit", "1", "--pyspy", str(given))
    rights = said["hang"]["rights"]
    assert rights["stacks"] == (own == "another machine"), rights
    if own == "another machine":
        assert code == 1
    else:
        why = "Exec format error" if own == "does not start" else "it is another program"
        assert f"the py-spy that was brought cannot be used ({why})" in str(rights["unread"])
        assert code in (1, 3), said
    assert not [each for each in said["hang"]["commands"] if each.startswith("pip ")]


def test_no_job_and_no_such_job() -> None:
    done = hang("--local", "--master-port", "2", "--for", "0.2")
    assert done.returncode == 3
    assert "No job" in done.stdout
    assert all("has no rank here" in line for line in done.stderr.splitlines()), "of others on this machine"


@cases
def test_a_wrong_command_line_is_refused(words: tuple[str, ...], said: str) -> None:
    done = hang(*words)
    assert (done.returncode, done.stdout) == (2, "")
    assert said in done.stderr
