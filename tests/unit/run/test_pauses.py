"""When a silence is odd, what moves a job, and when a hang is named."""

from collections.abc import Callable, Iterable

import pytest

from doctor.errors import UsageError
from doctor.run.look import AGAIN, JobLook, Watcher
from doctor.run.options import RunWishes
from doctor.run.pauses import FACTOR, LEAST, OutputPauses, Passing
from tests.unit.run.test_losses import Printed, Text

STUCK = JobLook("hang", "rank 3 sleeps", frozenset({("node2", 7)}))


def passing(*texts: str) -> list[bool]:
    """For each text whether the job moved when it was printed."""
    out = Printed({"stdout": Text(b"")})
    read = Passing(out)  # type: ignore[arg-type]
    moved = []
    for text in texts:
        out.streams["stdout"].text += text.encode()
        moved.append(read.moved())
    return moved


def test_without_steps_whatever_is_printed_moves() -> None:
    assert passing("a\n", "", "a\n", "0.1\n", "0.2\n") == [True, False, True, True, True]


def test_a_complaint_that_repeats_does_not_move() -> None:
    retries = [f"[W1123 18:44:5{n}.690168727 socket.cpp:764] [c10d] no address\n" for n in range(4)]
    errors = [f"2026-01-01 ERROR: attempt {n} failed\n" for n in range(3)]
    assert passing(*retries, *errors) == [True, False, False, False, True, False, False]
    assert passing("ready\n", "ERROR: x\nready\n") == [True, True]


def test_with_steps_a_heartbeat_does_not_move() -> None:
    steps = [f"step {n} loss 1.{n}\n" for n in range(5)]
    beats = [f"still waiting for rank 3, {n} s\n" for n in range(4)]
    assert passing(*steps, *beats, "step 4 loss 1.4\n", "step 5 loss 1.3\n", "saving\n") == [
        *([True] * 5),
        *(True, False, False, False),
        *(False, True, True),
    ]


def test_progress_bars_move() -> None:
    assert passing(*(f"\r{n}/90 [00:0{n}<00:10, 3.1it/s]" for n in range(1, 9))) == [True] * 8


def test_the_limit_follows_the_longest_pause() -> None:
    pauses = OutputPauses(0.0, None)
    assert pauses.limit == LEAST
    pauses.moved(500.0)
    assert pauses.limit == LEAST
    pauses.moved(650.0)
    pauses.moved(652.0)
    assert pauses.limit == FACTOR * 150
    assert pauses.silent(672.0) == 20
    pauses.forget(1000.0)
    assert (pauses.silent(1001.0), pauses.limit) == (1, FACTOR * 150)


@pytest.mark.parametrize("word", ["", "0", "-3", "nan", "1m", "inf", "1e9"])
def test_other_values_of_stall_are_refused(word: str) -> None:
    with pytest.raises(UsageError, match="neither auto nor"):
        _ = RunWishes(stall=word).least


def test_values_of_stall() -> None:
    assert RunWishes().least is None
    assert RunWishes(stall="20").least == 20


class Done:
    """A look that is over at once."""

    def __init__(self, look: JobLook) -> None:
        self._look = look

    def poll(self) -> bool:
        return True

    def result(self) -> JobLook:
        return self._look

    def end(self) -> None:
        pass


def watcher(
    pauses: OutputPauses, looks: Iterable[JobLook]
) -> tuple[Watcher, Callable[[float], JobLook | None]]:
    given = iter(looks)
    made = Watcher(pauses, lambda _: Done(next(given)))  # type: ignore[arg-type, return-value]

    def told(now: float) -> JobLook | None:
        return made.found(now) or made.found(now)

    return made, told


def test_a_hang_is_named_when_two_looks_agree() -> None:
    _, told = watcher(OutputPauses(0.0, 20.0), [STUCK, STUCK])
    assert [told(now) for now in (5.0, 19.0, 20.0, 21.0, 20.0 + AGAIN)] == [None, None, None, None, STUCK]


def test_it_is_told_once() -> None:
    _, told = watcher(OutputPauses(0.0, 20.0), [STUCK] * 9)
    assert [told(now) for now in range(20, 300)].count(STUCK) == 1


def test_looks_that_disagree_name_nobody() -> None:
    other = JobLook("hang", "rank 4 sleeps", frozenset({("node1", 8)}))
    _, told = watcher(OutputPauses(0.0, 20.0), [STUCK, other] * 20)
    assert [told(now) for now in range(20, 120)].count(None) == 100


def test_a_job_that_moves_is_left_alone() -> None:
    _, told = watcher(OutputPauses(0.0, 20.0), [STUCK, JobLook("moves", ""), STUCK, JobLook("waits", "")] * 9)
    assert not any(told(now) for now in range(20, 600))


def test_a_job_that_goes_on_takes_the_first_look_back() -> None:
    pauses = OutputPauses(-5.0, 20.0)
    pauses.moved(0.0)
    made, told = watcher(pauses, [STUCK, STUCK])
    assert told(20.0) is None
    made.moved(22.0)
    assert told(22.0 + AGAIN) is None
    assert pauses.limit == FACTOR * 22


def test_what_is_undecided_is_told_too() -> None:
    absent = JobLook("no job", "no ranks")
    _, told = watcher(OutputPauses(0.0, 20.0), [absent] * 9)
    assert [told(now) for now in range(20, 300)].count(absent) == 1


def test_a_failure_that_was_printed_is_told_although_no_rank_runs() -> None:
    absent = JobLook("no job", "no ranks", printed="the name of the head has no address", failed=True)
    _, told = watcher(OutputPauses(0.0, 20.0), [absent] * 9)
    assert next(now for now in range(20, 300) if told(now)) < LEAST


def test_three_steps_make_a_heartbeat_count_no_more() -> None:
    steps = [f"step {n} loss 1.{n}\n" for n in range(4)]
    beat = "still waiting\n"
    assert passing(*steps[:2], beat, beat) == [True, True, True, True]
    assert passing(*steps[:3], beat, beat) == [True, True, True, True, False]
