"""How long a step takes: by the end of a log, and by the looks of a watch."""

import pytest
from msgspec.structs import replace

from doctor.hang.judge import judge
from doctor.hang.judge.pace import StepPace
from doctor.live.evidence import LibraryText, LiveEvidence
from doctor.live.onhost.job_files import step_seconds
from tests.support.cases import cases
from tests.support.hang.written import evidence


@cases
def test_by_a_log(log: str, seconds: float | None) -> None:
    found = step_seconds(log.encode())
    assert found == (seconds if seconds is None else pytest.approx(seconds))


def test_some_steps_that_take_long_do_not_count() -> None:
    lines = [f"2026-11-20 09:{at // 60:02}:{at % 60:02} step {n}" for n, at in enumerate([0, 1, 2, 500, 501])]
    assert step_seconds("\n".join(lines).encode()) == 1.0


def logged(seen: LiveEvidence, text: str, pid: int = 4000) -> LiveEvidence:
    first, *rest = seen.hosts
    said = LibraryText(source="step-pace", name="train.log", pid=pid, text=text)
    return replace(seen, hosts=(replace(first, libraries=(said,)), *rest))


@cases
def test_a_step_that_is_always_long_is_no_hang(text: str, pid: int, code: int, limit: float) -> None:
    found = judge(logged(evidence(["waits", "sleeps", "waits"]), text, pid))
    assert (found.exit_code, found.limit) == (code, limit)


def test_a_computation_is_compared_with_the_steps_of_the_log() -> None:
    found = judge(logged(evidence(["waits", "spins", "waits"]), "0.500"))
    assert found.exit_code == 3
    assert found.sentence == (
        "Rank 1 on node1 has computed for 200 s; its log shows steps of 0.5 s, so this is an endless loop,"
        " or not a training step."
    )


def test_by_the_looks_of_a_watch() -> None:
    pace = StepPace()
    for now, step in ((0.0, 3), (10.0, 3), (20.0, 4), (110.0, 4), (120.0, 5), (130.0, 25)):
        pace.add(judge(evidence(["waits"] * 2, steps=(step, step))), now)
        if now <= 20.0:
            assert pace.limit(60.0) == 60.0, "when the first step began is unknown"
    assert (pace.longest, pace.limit(60.0), pace.limit(500.0)) == (100.0, 200.0, 500.0)
    pace.add(judge(evidence(["waits"] * 2, steps=(1, 1))), 900.0)
    assert pace.longest == 100.0, "the job was started again"
