"""The job of another user, seen by a user who may not look into it: at most suspects, never a culprit."""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.hang.named import culprits, suspects
from tests.support.hang.ranks import RunningJob
from tests.support.paths import ROOT

OWNER, NOBODY = 61_234, 65_534

pytestmark = [pytest.mark.slow, pytest.mark.skipif(os.geteuid() != 0, reason="only root has other users")]


def become(uid: int) -> tuple[str, ...]:
    return ("setpriv", f"--reuid={uid}", f"--regid={uid}", "--clear-groups")


@pytest.fixture
def make_job() -> Iterator[Callable[..., RunningJob]]:
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o777)
        job = RunningJob(Path(folder), 3, become=become(OWNER))

        def make(**more: str) -> RunningJob:
            job.start(**more)
            (job.folder / "fifo").chmod(0o666)
            return job

        yield make
        job.close()


def as_nobody(job: RunningJob, *words: str) -> tuple[int, dict[str, Any]]:
    argv = [*become(NOBODY), sys.executable, "-m", "doctor", "hang", "--local", "--pid", str(job.pids[0])]
    done = subprocess.run(
        [*argv, "--for", "1", "--limit", "1", "--json", "-", *words],
        cwd=ROOT,
        env={"PATH": os.defpath, "HOME": "/"},
        capture_output=True,
        text=True,
        timeout=100,
    )
    assert done.stdout, done.stderr
    said: dict[str, Any] = json.loads(done.stdout)
    assert said["hang"]["rights"]["level"] == "another user", said
    assert culprits(said) == []
    return done.returncode, said


def test_a_stopped_rank_is_a_suspect(make_job: Callable[..., RunningJob]) -> None:
    job = make_job(FAULT="stop")
    job.hangs()
    code, said = as_nobody(job)
    assert (code, said["hang"]["state"], said["hang"]["confidence"]) == (3, "unknown", "suspect")
    assert [(each["pid"], each["cause"]) for each in suspects(said)] == [(job.pids[1], "stopped")]
    assert said["hang"]["standing_still_seconds"] > 0.5
    assert f"as uid {OWNER}, who owns the job, or with --sudo" in said["hang"]["rights"]["more"][0]
    assert said["hang"]["job"]["found"] == 3


def test_ranks_that_are_alike_are_no_suspects(make_job: Callable[..., RunningJob]) -> None:
    """One sleeps and the others wait: from outside, the difference is invisible."""
    job = make_job(FAULT="sleep")
    job.hangs()
    code, said = as_nobody(job)
    assert (code, said["hang"]["state"], suspects(said)) == (3, "unknown", [])
    assert said["headline"].startswith(f"Only uid {OWNER} and root may look into this job")


@pytest.mark.long
def test_a_job_that_moves_is_said_to_move(make_job: Callable[..., RunningJob]) -> None:
    job = make_job(FAULT="")
    job.runs()
    code, said = as_nobody(job)
    assert (code, said["hang"]["state"]) == (0, "moves")
