"""`doctor slow` as it is typed: real ranks over gloo, their faults, the report, and the same from a file."""

import json
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.support.cases import cases
from tests.support.paths import ROOT
from tests.support.slow import starving
from tests.support.slow.ranks import SlowJob, make_slow_job

__all__ = ["make_slow_job"]

pytestmark = pytest.mark.slow
Make = Callable[..., SlowJob]
SECONDS = "5"


def slow(*words: str) -> subprocess.CompletedProcess[str]:
    argv = [sys.executable, "-m", "doctor", "slow", *words]
    return subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, timeout=150)


def judged(job: SlowJob, *words: str) -> tuple[int, dict[str, Any]]:
    done = slow("--local", "--master-port", str(job.port), "--for", SECONDS, "--json", "-", *words)
    assert done.stdout, done.stderr
    said: dict[str, Any] = json.loads(done.stdout)
    return done.returncode, said


def named(said: dict[str, Any]) -> list[tuple[int | None, str]]:
    return [(each["rank"], each["cause"]) for each in said["findings"]]


def test_a_slow_loader_is_named_and_again_from_a_file(make_slow_job: Make, tmp_path: Path) -> None:
    job, kept = make_slow_job(), tmp_path / "slow.json"
    job.fault("loader", 2)
    code, said = judged(job, "--save", str(kept))
    assert (code, named(said)) == (1, [(2, "data loader")]), said
    (found,) = said["findings"]
    assert (found["status"], found["pid"], found["slow"]["lag"]) == ("warn", job.pids[2], "late")
    assert found["slow"]["line"]["function"].endswith("__getitem__")
    assert 0.35 < found["slow"]["share"] < 0.75, "50 of some 90 ms a step"
    assert (said["slow"]["known_by"], said["slow"]["hang"]) == ("threads", "moves")
    assert said["slow"]["steps"] >= 30
    assert kept.stat().st_mode & 0o777 == 0o600
    assert "swordfish" not in kept.read_text()
    again = slow("--replay", str(kept), "--json", "-")
    assert (again.returncode, json.loads(again.stdout)) == (1, said)
    text = slow("--replay", str(kept))
    assert text.returncode == 1
    assert "SLOW  rank 2" in text.stdout
    other = subprocess.run(
        [sys.executable, "-m", "doctor", "hang", "--replay", str(kept)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert other.returncode == 0, "the looks in it are those of doctor hang"


def test_nobody_is_named_in_a_healthy_job(make_slow_job: Make) -> None:
    job = make_slow_job()
    job.fault("none")
    code, said = judged(job)
    assert named(said) == [], said
    if code == 3:
        pytest.skip(f"this machine was too busy: {said['headline']}")
    assert (code, said["slow"]["state"]) == (0, "nobody"), said
    assert said["slow"]["smallest"] >= 0.08


def test_nobody_is_named_if_batches_are_uneven(make_slow_job: Make) -> None:
    job = make_slow_job()
    job.fault("jitter", -1, 60)
    code, said = judged(job)
    assert named(said) == [], said
    assert code in (0, 3)


@cases
def test_the_reason_is_said(make_slow_job: Make, fault: str, ms: float, lag: str, cause: str) -> None:
    job = make_slow_job()
    job.fault(fault, 1, ms)
    code, said = judged(job)
    assert (code, named(said)) == (1, [(1, cause)]), said
    assert said["findings"][0]["slow"]["lag"] == lag


@pytest.mark.long
def test_a_stage_of_a_pipeline_that_pauses_is_told_from_a_slow_one(make_slow_job: Make) -> None:
    """Its neighbours wait in receives, which no worker of gloo shows."""
    job = make_slow_job(4, KIND="pipeline")
    job.fault("checkpoint", 1, 1)
    code, said = judged(job)
    assert (code, named(said)) == (1, [(1, "checkpoint")]), said
    assert said["findings"][0]["slow"]["lag"] == "pauses"


def test_of_two_faults_both_are_named_with_their_reasons(make_slow_job: Make) -> None:
    job = make_slow_job()
    job.faults("loader 1 150", "uneven 3 60")
    code, said = judged(job)
    assert (code, named(said)) == (1, [(1, "data loader"), (3, "takes longer at the same line")]), said


@pytest.mark.skipif(not starving.can_limit(), reason="no groups with a CPU quota can be made here")
def test_a_real_cpu_quota_is_the_reason(make_slow_job: Make) -> None:
    """All ranks compute a little, and one may use only a fiftieth of a processor."""
    job = make_slow_job()
    job.fault("computes", -1, 5)
    with starving.quota(job.pids[1], 0.02):
        code, said = judged(job)
    assert (code, named(said)) == (1, [(1, "CPU quota")]), said
    assert "periods" in said["findings"][0]["slow"]["why"][0]


@pytest.mark.long
@pytest.mark.skipif(not starving.can_limit(), reason="no groups can be made here")
def test_others_beside_it_are_the_reason(make_slow_job: Make) -> None:
    job = make_slow_job()
    job.fault("computes", -1, 5)
    with starving.hogs(job.pids[1]):
        code, said = judged(job)
    assert (code, named(said)) == (1, [(1, "other processes")]), said


def test_a_job_that_stands_still_is_for_doctor_hang(make_slow_job: Make) -> None:
    job = make_slow_job()
    job.fault("none")
    job.ranks[1].send_signal(signal.SIGSTOP)
    try:
        done = slow("--local", "--master-port", str(job.port), "--for", "2")
    finally:
        job.ranks[1].send_signal(signal.SIGCONT)
    assert done.returncode == 3, done.stdout + done.stderr
    assert "It stands still: doctor hang" in done.stdout


def test_an_interrupt_shows_what_is_known_and_leaves_nothing(make_slow_job: Make) -> None:
    job = make_slow_job()
    job.fault("loader", 2)
    argv = [sys.executable, "-m", "doctor", "slow", "--local", "--master-port", str(job.port), "--for", "60"]
    started = psutil.Popen(argv, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        below: list[psutil.Process] = []
        end = time.monotonic() + 60
        while not any("sample" in line for line in _stages(started, end)):
            assert time.monotonic() < end
        below = started.children(recursive=True)
        assert below, "the agent and its children"
        started.send_signal(signal.SIGINT)
        out, err = started.communicate(timeout=60)
    finally:
        for each in (*below, started):
            with suppress(psutil.NoSuchProcess):
                each.kill()
        _, left = psutil.wait_procs(below, timeout=5)
    assert not left
    assert started.returncode in (1, 3, 130), (out, err)


def _stages(started: psutil.Popen, end: float) -> Iterator[str]:
    """The lines that it writes about its progress."""
    ready, _, _ = select.select([started.stderr], [], [], max(0.0, end - time.monotonic()))
    if ready:
        yield started.stderr.readline()


def test_without_a_job_nothing_is_said_to_be_well() -> None:
    done = slow("--local", "--master-port", "1", "--for", "1")
    assert done.returncode == 3
    assert "No job" in done.stdout


@pytest.mark.alone
def test_a_late_host_of_a_job_on_gpus_is_named_by_the_threads_of_nccl(make_slow_job: Make) -> None:
    """The GPU and NCCL are stand-ins: threads of the rank."""
    job = make_slow_job(KIND="nccl")
    job.fault("loader", 2, 60)
    code, said = judged(job)
    assert (code, named(said), said["slow"]["known_by"]) == (1, [(2, "data loader")], "threads"), said
    job.fault("none")
    code, said = judged(job)
    assert named(said) == [], said
    if code == 3:
        pytest.skip(f"this machine was too busy: {said['headline']}")
    assert (code, said["slow"]["state"], said["slow"]["known_by"]) == (0, "nobody", "threads"), said
    assert "a slow device would not be seen" in str(said).lower()
