"""Real jobs in which a rank waits for what somebody holds: a lock on a file, a child, a thread."""

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import pytest

from tests.process.hang.test_command import judged
from tests.process.hang.test_work import SCRIPT, each
from tests.support.hang.named import culprits, suspects
from tests.support.hang.ranks import RunningJob, make_job

__all__ = ["make_job"]

Look = Callable[..., tuple[RunningJob, int, dict[str, Any]]]

pytestmark = pytest.mark.slow


@pytest.fixture
def look(make_job: Callable[..., RunningJob]) -> Iterator[Look]:
    """A job of two ranks in which one does this, and what is said of it."""
    made: list[RunningJob] = []

    def looked(kind: str, *words: str) -> tuple[RunningJob, int, dict[str, Any]]:
        job = make_job(world=2, script=SCRIPT, KIND=kind)
        made.append(job)
        job.hangs()
        code, said = judged(job, "--limit", "1", *words)
        return job, code, said

    yield looked
    for job in made:
        with suppress(OSError, ValueError):
            os.kill(holder(job), signal.SIGKILL)


def holder(job: RunningJob) -> int:
    return int((job.folder / "held.1").read_text())


@pytest.mark.parametrize("kind", each("hub_lock", "flock_of_another", "sqlite_lock"))
def test_who_holds_a_lock_on_a_file(kind: str, look: Look) -> None:
    job, code, said = look(kind)
    (culprit,) = culprits(said)
    assert (code, culprit["rank"], culprit["cause"]) == (1, 1, "waits for a lock")
    assert f"waits for the lock {job.folder}/hub.lock, held by process {holder(job)} (" in culprit["summary"]
    assert ", root, for " in culprit["summary"] or os.geteuid()
    end = f"kill {holder(job)}    # ends the process that holds the lock"
    assert end in said["hang"]["commands"]


@pytest.mark.long
def test_a_lock_that_a_killed_build_left(look: Look) -> None:
    job, code, said = look("build_lock")
    (culprit,) = culprits(said)
    assert (code, culprit["rank"], culprit["cause"]) == (1, 1, "waits for a lock")
    assert f"waits for the file {job.folder}/build/lock to go: no process" in culprit["summary"]


@pytest.mark.parametrize("kind", each("lock_of_a_download"))
def test_whose_lock_is_held_by_one_that_works(kind: str, look: Look) -> None:
    job, code, said = look(kind)
    assert (code, culprits(said)) == (3, [])
    (suspect,) = suspects(said)
    assert f"held by process {holder(job)}" in suspect["summary"]
    assert suspect["summary"].split(", which ")[1].startswith("reads or writes")


def test_a_lock_that_is_held_for_a_short_while(make_job: Callable[..., RunningJob]) -> None:
    job = make_job(world=2, script=SCRIPT, KIND="short_lock")
    job.until((job.folder / "held.1").exists)
    code, said = judged(job)
    assert (code, culprits(said)) == (0, [])
    after = job.step(0)
    job.until(lambda: job.step(0) > after + 3)


@pytest.mark.long
def test_a_lock_that_is_held_over_a_collective(
    look: Look,
) -> None:
    job, code, said = look("lock_over_collective")
    (culprit,) = culprits(said)
    assert (code, culprit["rank"], culprit["cause"]) == (1, 1, "waits for a lock")
    assert f"held by process {job.pids[0]} (" in culprit["summary"]
    assert "; that is rank 0, which waits in all_reduce, work.py:" in culprit["summary"]
    assert not any(f"kill {job.pids[0]}" in each for each in said["hang"]["commands"])
    assert any("before the collective in which its holder waits" in each for each in said["hang"]["do"])


def test_a_child_that_was_forked_with_a_lock(
    look: Look,
) -> None:
    _, code, said = look("fork_lock")
    (culprit,) = culprits(said)
    assert (code, culprit["rank"], culprit["cause"]) == (1, 1, "waits for a lock held over a fork")
    assert "it was forked while another thread held it in tokenize, work.py:" in culprit["summary"]
    assert culprit["hang"]["stack"][0]["function"] == "tokenize"
    assert any("by spawn in place of fork" in each for each in said["hang"]["do"])


@pytest.mark.long
def test_a_child_that_stands_still_is_shown_with_what_it_does(
    look: Look,
) -> None:
    _, code, said = look("child_sleeps")
    (culprit,) = culprits(said)
    assert (code, culprit["rank"], culprit["cause"]) == (1, 1, "waits for a child process")
    assert ", which sleeps" in culprit["summary"]


def test_a_rank_that_left_before_the_others(look: Look) -> None:
    _, code, said = look("leave")
    (culprit,) = culprits(said)
    assert (code, culprit["rank"], culprit["cause"]) == (1, 1, "has left and cannot exit")
    assert "cannot exit: its thread uploader is in rest, work.py:" in culprit["summary"]
    assert culprit["hang"]["stack"][0]["function"] == "rest"


def test_of_ranks_that_all_left_none_is_accused(
    look: Look,
) -> None:
    _, code, said = look("leave_all")
    assert (code, culprits(said)) == (3, [])
