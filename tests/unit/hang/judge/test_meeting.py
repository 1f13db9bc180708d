"""Ranks that wait for their first meeting, and jobs in which all ranks wait and none can be named."""

import pytest
from msgspec.structs import replace

from doctor.hang.advice import advice_of
from doctor.hang.judge import judge
from doctor.hang.judge.judgement import Cause, HangState, Judgement
from doctor.live.evidence import JobMember, LiveEvidence
from tests.support.cases import cases
from tests.support.hang.written import both, changed, evidence

A, B = "10.0.0.1:29500", "10.0.0.1:29501"


def meeting(
    *numbers: int, world: int = 3, job: str = A, does: str = "meets", age: float = 90.0
) -> LiveEvidence:
    return evidence(dict.fromkeys(numbers, does), ["node1"], world=world, job=job, age=age)


def told(found: Judgement) -> list[tuple[int | None, Cause, str]]:
    return [(each.rank, each.cause, each.sentence) for each in found.culprits]


def test_who_never_was_there_is_not_gone() -> None:
    found = judge(meeting(0, 1, job="127.0.0.1:29500"))
    assert (found.verdict, found.exit_code, found.named) == (HangState.UNKNOWN, 3, ())
    assert found.sentence == (
        "No process that was seen has rank 2 of 3: not started yet, or ended before it joined."
    )
    assert advice_of(found).do[0].startswith("start rank 2, or read the log")
    assert judge(meeting(0, 1, age=20.0)).verdict is HangState.WAITS
    launched = changed(meeting(0, 1, job="127.0.0.1:29500"), lambda each: replace(each, launched=100))
    assert [each.cause for each in judge(launched).culprits] == [Cause.GONE]


@cases
def test_parts_that_complete_each_other_are_one_job(
    one: tuple[int, ...], other: tuple[int, ...], who: int, words: str
) -> None:
    world = len(one) + len(other)
    found = judge(both(meeting(*one, world=world), meeting(*other, world=world, job=B)))
    assert (found.verdict, found.exit_code) == (HangState.HANG, 1)
    assert told(found) == [(who, Cause.ADDRESS, words)]
    assert "MASTER_PORT=" in advice_of(found).do[0]
    young = both(meeting(*one, world=world, age=9), meeting(*other, world=world, job=B, age=9))
    assert (judge(young).verdict, judge(young).exit_code) == (HangState.WAITS, 0)


@pytest.mark.parametrize(
    "seen",
    [
        both(meeting(0, 1, world=4), meeting(2, world=4, job=B)),
        both(meeting(0, 1), changed(meeting(2, job=B), lambda each: replace(each, command="python eval.py"))),
        both(meeting(0, 1), meeting(2, job=B, does="waits", age=9)),
        both(meeting(0, 1), changed(meeting(2, job=B), lambda each: replace(each, user="bob"))),
    ],
    ids=["a rank is missing", "another program", "met", "another user"],
)
def test_other_parts_stay_two_jobs_and_nobody_is_accused(seen: LiveEvidence) -> None:
    found = judge(seen)
    assert (found.verdict, len(found.jobs), found.exit_code) == (HangState.SEVERAL, 2, 3)
    assert not found.culprits


def test_two_processes_of_one_number_are_said_first() -> None:
    one = changed(meeting(0, 1, 2), lambda each: replace(each, rank=min(each.rank or 0, 1)))
    found = judge(one)
    words = "is claimed by process 4010 on node1 and process 4020 on node1"
    assert (found.exit_code, told(found)) == (1, [(1, Cause.NUMBER, words)])
    assert found.sentence == "2 processes have rank 1; none has rank 2."
    two_hosts = evidence(dict.fromkeys(range(4), "meets"), world=4, job=A)
    found = judge(changed(two_hosts, lambda each: replace(each, rank=(each.rank or 0) % 2)))
    words = "is claimed by process 4000 on node1 and process 4020 on node2"
    assert told(found) == [(0, Cause.NUMBER, words)]


@cases
def test_whoever_is_not_named_the_next_step_is(does: list[str], sentence: str, do: str) -> None:
    found = judge(evidence(does, ["node1"]))
    assert (found.exit_code, found.culprits) == (3, ())
    assert sentence in found.sentence
    assert any(do in each for each in advice_of(found).do), advice_of(found)


def test_a_child_that_is_a_rank_itself_is_said_to_be_where_it_is() -> None:
    def waits(each: JobMember) -> JobMember:
        if each.rank != 1 or each.b is None:
            return each
        main = replace(each.b.threads[0], waits="do_wait", syscall=("call 61", hex(4020)))
        look = replace(each.b, threads=(main, *each.b.threads[1:]))
        return replace(each, a=look, b=look)

    (culprit,) = judge(changed(evidence(["waits", "sleeps", "waits"], ["node1"]), waits)).culprits
    assert culprit.sentence.startswith(
        "waits for a child process; that is rank 2, which waits in all_reduce, train.py:88"
    )
