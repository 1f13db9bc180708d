"""`doctor hang --watch`, and the hosts and checks that --check would examine, without hosts."""

from collections.abc import Callable
from typing import Any

import pytest
from msgspec.structs import replace

from doctor.cli import run
from doctor.exam.progress import ProgressLine
from doctor.hang.check import HostSuggestion, suggested
from doctor.hang.judge import HangState, Judgement, judged
from doctor.hang.options import HangWishes
from doctor.hang.watch import watch
from doctor.live.evidence import LiveEvidence
from doctor.live.look import whole
from doctor.live.sight import Sight
from tests.support.cases import cases
from tests.support.hang.written import both, changed, evidence

WISHES = HangWishes()
MOVES = evidence(["waits", "waits"], silent=0.1)
HANGS = evidence(["waits", "sleeps"])
ENDED = evidence([], hosts=["node1"], world=1)
AWAY = LiveEvidence(started="2026-11-20T09:00:00Z", asked=("node1",), unreached={"node1": "timed out"})


def later(seen: LiveEvidence) -> LiveEvidence:
    """Another job on the same hosts."""
    return changed(seen, lambda m: replace(m, pid=m.pid + 9_000, job="node1:29600"))


class Looks:
    def __init__(self, *seen: LiveEvidence | BaseException) -> None:
        self.left = list(seen)

    def __call__(self) -> Sight:
        one = self.left.pop(0)
        if isinstance(one, BaseException):
            raise one
        return Sight(one)


@pytest.mark.parametrize(
    ("seen", "news"),
    [
        ((MOVES, HANGS), True),
        ((HANGS,), True),
        ((MOVES, ENDED, ENDED), True),
        ((ENDED,), False),
        ((AWAY,), False),
        ((MOVES, KeyboardInterrupt()), False),
        ((MOVES, ENDED, KeyboardInterrupt()), False),
    ],
)
def test_only_a_hang_or_the_end_of_a_job_is_news(
    seen: tuple[LiveEvidence | BaseException, ...], news: bool
) -> None:
    assert watch(Looks(*seen), WISHES, ProgressLine(False), every=0.0)[2] == news


def watched(looks: Callable[[], Sight], **more: Any) -> Judgement:
    return watch(looks, WISHES, ProgressLine(False), every=0.0, **more)[1]


@pytest.mark.parametrize(
    ("seen", "verdict", "left"),
    [
        ((MOVES, MOVES, HANGS, MOVES), HangState.HANG, 1),
        ((ENDED, MOVES), HangState.NO_JOB, 1),
        ((AWAY, MOVES), HangState.NO_JOB, 1),
        ((MOVES, ENDED, MOVES, ENDED, ENDED, MOVES), HangState.NO_JOB, 1),
        ((MOVES, AWAY, AWAY, AWAY, HANGS), HangState.HANG, 0),
        ((MOVES, both(MOVES, later(MOVES)), HANGS), HangState.HANG, 0),
        ((both(MOVES, later(MOVES)), HANGS, MOVES), HangState.HANG, 1),
        ((both(MOVES, later(MOVES)), both(MOVES, later(HANGS)), HANGS), HangState.SEVERAL, 1),
        ((MOVES, KeyboardInterrupt()), HangState.MOVES, 0),
    ],
)
def test_it_looks_until_the_job_hangs_or_has_ended(
    seen: tuple[LiveEvidence | BaseException, ...], verdict: HangState, left: int
) -> None:
    looks = Looks(*seen)
    assert watched(looks).verdict is verdict
    assert len(looks.left) == left


def test_each_look_is_a_line_of_a_log(capsys: pytest.CaptureFixture[str]) -> None:
    watched(Looks(MOVES, HANGS))
    first, second = capsys.readouterr().err.splitlines()
    assert first.endswith(" UTC, look 1: The job moves.")
    assert " UTC, look 2: The job waits for rank 1" in second
    watched(Looks(MOVES, HANGS), quiet=True)
    assert capsys.readouterr().err == ""


def test_who_is_late_in_every_look_is_not_accused(capsys: pytest.CaptureFixture[str]) -> None:
    late = evidence(["waits"] * 5 + ["sleeps"], silent=0.1)
    found = watched(Looks(*[late] * 6, KeyboardInterrupt()))
    assert (found.verdict, found.exit_code, found.named) == (HangState.MOVES, 0, ())
    assert "rank 5" not in capsys.readouterr().err


def test_no_look_begins_that_the_deadline_would_cut() -> None:
    looks = Looks(MOVES, HANGS)
    assert watched(looks, until=0.0).verdict is HangState.MOVES
    assert len(looks.left) == 1


@pytest.mark.parametrize("timeout", [10.0, 60.0, 600.0])
@pytest.mark.parametrize("age", [0.0, 1.0, 20.0, 10_000.0])
def test_an_answer_comes_within_the_timeout(timeout: float, age: float) -> None:
    looks = whole(timeout, 2.0, age)
    assert timeout / 2 <= looks < timeout
    if timeout / 2 < looks and age < timeout:
        assert age + looks + 2.0 < timeout


def test_an_interruption_before_the_first_judgement_has_none() -> None:
    with pytest.raises(KeyboardInterrupt):
        watched(Looks(KeyboardInterrupt()))


def test_all_in_one_collective_suggest_a_check_of_their_hosts() -> None:
    found = suggested(judged(evidence(["waits"] * 4, ["node1", "node2"])))
    assert isinstance(found, HostSuggestion)
    assert found.hosts == ("node1", "node2")
    assert "port-unreachable" in found.only


def test_of_several_jobs_only_one_may_suggest_a_check() -> None:
    waits = evidence(["waits", "waits"])
    found = suggested(judged(both(waits, later(HANGS))))
    assert found == suggested(judged(waits)) is not None
    assert suggested(judged(both(waits, later(waits)))) is None


@pytest.mark.parametrize("seen", [HANGS, MOVES, ENDED])
def test_what_is_in_python_suggests_none(seen: LiveEvidence) -> None:
    assert suggested(judged(seen)) is None


@cases
def test_what_is_refused(words: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["hang", *words]) == 2
    assert said in capsys.readouterr().err
