"""Real torchrun jobs in which rank 1 did what the name says, recorded after others had waited for 15 s."""

import gzip
from functools import cache

import msgspec
import pytest
from msgspec.structs import replace

from doctor.hang.judge import Judgement, judge
from doctor.hang.judge.judgement import Cause, HangState
from doctor.live.evidence import JobMember, LiveEvidence
from tests.support.cases import from_cases
from tests.support.hang.trials import without_stacks
from tests.support.hang.written import changed
from tests.support.paths import ROOT

SAMPLE = ROOT / "tests" / "samples" / "hang" / "work.json.gz"
LIMIT = 15.0
WORKS = (
    *("checkpoint", "compile_by_gcc", "compile_model", "long_import", "small_reads", "upload"),
    *("upload_by_child", "upload_by_polled_child", "upload_by_thread"),
)
COMPUTES = (
    *("collect", "count_words", "decode", "evaluate", "matmul", "numpy_alone", "spin", "threads_compute"),
)
MAY_WORK = (
    *("judge_by_asyncio", "judge_by_curl", "judge_by_http", "judge_by_http_with_timeout"),
    *("judges_by_threads", "many_files", "pool_computes", "slow_upload"),
)
HANGS = from_cases(__file__, "HANGS", dict[str, Cause])


@cache
def recorded() -> dict[str, LiveEvidence]:
    return msgspec.json.decode(gzip.decompress(SAMPLE.read_bytes()), type=dict[str, LiveEvidence])


def found(kind: str) -> Judgement:
    return judge(recorded()[kind], limit=LIMIT)


def named(judgement: Judgement) -> list[int | None]:
    return [each.rank for each in judgement.named]


def test_each_recording_is_judged_here() -> None:
    assert {*WORKS, *COMPUTES, *MAY_WORK, *HANGS, "healthy"} == recorded().keys()


@pytest.mark.parametrize("kind", WORKS)
def test_who_gets_something_done_works(kind: str) -> None:
    made = found(kind)
    assert (made.verdict, made.exit_code, named(made)) == (HangState.WAITS, 0, [1])


@pytest.mark.parametrize("kind", COMPUTES)
def test_who_computes_is_named_and_not_accused(kind: str) -> None:
    made = found(kind)
    assert (made.exit_code, named(made), made.culprits) == (3, [1], ())
    assert made.named[0].cause is Cause.COMPUTES
    assert "if its steps are shorter than that, it is an endless loop" in made.sentence


@pytest.mark.parametrize("kind", MAY_WORK)
def test_what_may_be_work_is_not_accused(kind: str) -> None:
    made = found(kind)
    assert (made.exit_code, named(made), made.culprits) == (3, [1], ())


@pytest.mark.parametrize("kind", [*WORKS, *COMPUTES, *MAY_WORK])
def test_nor_is_it_without_stacks(kind: str) -> None:
    assert not judge(without_stacks(recorded()[kind]), limit=LIMIT).culprits


@pytest.mark.parametrize("kind", HANGS)
def test_what_stands_still_is_accused(kind: str) -> None:
    made = found(kind)
    assert (made.exit_code, named(made)) == (1, [1])
    assert made.named[0].cause is HANGS[kind]


def test_an_upload_without_its_bytes_would_be_a_hang() -> None:
    """Only the connections show it."""

    def member(each: JobMember) -> JobMember:
        return replace(each, a=each.a and replace(each.a, connections=each.b.connections if each.b else ()))

    assert judge(changed(recorded()["upload"], member), limit=LIMIT).exit_code == 1


def test_a_healthy_job_moves() -> None:
    made = found("healthy")
    assert (made.verdict, made.exit_code, made.named) == (HangState.MOVES, 0, ())
