"""Hosts that are too busy for the look: the look is bounded, and late answers are reported, not guessed."""

import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from doctor.hang.judge import Judgement, judge
from doctor.live import pyspy
from doctor.live.agents import LookPatience
from doctor.live.evidence import JobChoice
from doctor.live.sight import HostsToSee, see
from doctor.model import Host
from doctor.transport.local import LocalTransport
from tests.support.hang.ranks import RunningJob, make_job

__all__ = ["make_job"]

pytestmark = pytest.mark.slow

WHOLE, NEVER = 16.0, 120.0
LATE = 'case " $* " in *" --pid "{}" "*) exec sleep 600;; esac\n'


@pytest.fixture
def looked(
    make_job: Callable[..., RunningJob], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[[str], tuple[RunningJob, Judgement]]:
    """Look at a job whose rank 1 sleeps. py-spy gives no answer for `late`, a PID as {RANK}."""
    own = pyspy.find()
    if own is None:
        pytest.skip("py-spy is not installed")

    def look(late: str) -> tuple[RunningJob, Judgement]:
        job = make_job(3, FAULT="sleep")
        job.hangs()
        slow = late and LATE.format(late.format(*job.pids))
        tool = tmp_path / "tools" / "py-spy"
        tool.parent.mkdir()
        tool.write_text(f'#!/bin/sh\n{slow}exec {own} "$@"\n')
        tool.chmod(0o755)
        monkeypatch.setenv("PATH", str(tool.parent), prepend=os.pathsep)
        monkeypatch.setattr(pyspy, "for_host", lambda *_: ((), "none is brought"))
        transport, began = LocalTransport(), time.monotonic()
        try:
            sight = see(
                HostsToSee([Host("here", "localhost")], transport, patience=LookPatience(whole=WHOLE)), 0.5
            )
        finally:
            transport.close()
        assert time.monotonic() - began < NEVER
        return job, judge(sight.evidence, limit=0.1, choice=JobChoice(pid=job.pids[0]))

    return look


@pytest.mark.long
def test_one_rank_whose_stack_does_not_come(looked: Callable[[str], tuple[RunningJob, Judgement]]) -> None:
    _, found = looked("{0}")
    stacks = {each.rank: bool(each.member.b and each.member.b.python) for each in found.stands.ranks}
    assert stacks == {0: False, 1: True, 2: True}
    assert [note for note in found.notes if note.startswith("no stacks of rank 0 on here within ")]
    assert [(each.rank, each.pid) for each in found.named] == [(1, found.named[0].pid)]


def test_ranks_are_judged_by_proc_alone_where_no_stack_comes(
    looked: Callable[[str], tuple[RunningJob, Judgement]],
) -> None:
    job, found = looked("*")
    assert not any(look.python for rank in found.stands.ranks for look in rank.member.looks)
    (note,) = [note for note in found.notes if note.startswith("no stacks of ranks 0-2 on here within ")]
    assert note.endswith(": they are judged by /proc alone")
    assert [each.pid for each in found.named] == [job.pids[1]]
    assert found.confidence.value == "suspect"
