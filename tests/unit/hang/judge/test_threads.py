"""Ranks whose training runs in another thread than the main one: actors of Ray, and workers of RPC."""

import pytest
from msgspec.structs import replace

from doctor.hang.judge import judge
from doctor.hang.judge.judgement import Cause, HangState
from doctor.live.evidence import Frame, JobMember, LiveEvidence, Look, PythonThread
from tests.support.hang.written import FORWARD, LIB, MAIN, NANOSLEEP, changed, evidence, looked, with_main

SITE = LIB.removesuffix("/torch")
SERVES = Frame(name="main_loop", file=f"{SITE}/ray/_private/worker.py", line=900)
CALLS = Frame(name="rpc_sync", file=f"{LIB}/distributed/rpc/api.py", line=842)
LEAVES = Frame(name="shutdown", file=f"{LIB}/distributed/rpc/api.py", line=300)
RUNS = Frame(name="_run_function", file=f"{LIB}/distributed/rpc/internal.py", line=206)


def trained(
    seen: LiveEvidence, change: dict[int, tuple[Frame, ...]], added: dict[int, tuple[Frame, ...]]
) -> LiveEvidence:
    """The same with another stack of the main thread, and with another Python thread."""

    def look(each: Look | None, rank: int) -> Look | None:
        assert each is not None
        (main,) = each.python
        python = [replace(main, frames=change.get(rank, main.frames))]
        threads = each.threads
        if rank in added:
            python.append(PythonThread(tid=each.pid + 9, name="Thread-1", frames=added[rank]))
            other = replace(threads[0], tid=each.pid + 9, waits=NANOSLEEP, slept=95.0)
            threads = (*threads, other)
        return replace(each, python=tuple(python), threads=threads)

    def member(each: JobMember) -> JobMember:
        assert each.rank is not None
        return replace(each, a=look(each.a, each.rank), b=look(each.b, each.rank))

    return changed(seen, member)


def test_an_actor_of_ray_trains_beside_its_main_thread() -> None:
    seen = evidence(["waits", "waits", "waits", "sleeps"])
    asleep = trained(seen, {3: (SERVES,)}, {3: (FORWARD, MAIN)})
    found = judge(asleep)
    assert [(each.rank, each.cause, each.place) for each in found.culprits] == [
        (3, Cause.SLEEPS, "train.py:57")
    ]


def test_a_worker_of_rpc_works_in_a_thread_and_the_caller_waits() -> None:
    seen = evidence(["waits", "waits"], device=True)
    found = judge(trained(seen, {0: (CALLS, MAIN), 1: (LEAVES, MAIN)}, {1: (FORWARD, RUNS)}))
    assert (found.verdict, found.exit_code, found.stands.still) == (HangState.HANG, 1, 95.0)
    assert [(each.rank, each.cause, each.place) for each in found.culprits] == [
        (1, Cause.SLEEPS, "train.py:57")
    ]
    assert [(group.ranks, group.operation) for group in found.stands.groups] == [((0,), "rpc.rpc_sync")]


def test_a_worker_of_rpc_that_serves_two_callers_is_named_with_the_line_of_one() -> None:
    def two(each: Look) -> Look:
        if len(each.python) < 2:
            return each
        other = replace(each.python[1], tid=each.pid + 10)
        return replace(
            each,
            python=(other, *each.python),
            threads=(*each.threads, replace(each.threads[-1], tid=other.tid)),
        )

    seen = trained(
        evidence(["waits", "waits", "waits"], device=True),
        {0: (CALLS, MAIN), 1: (LEAVES, MAIN), 2: (CALLS, MAIN)},
        {1: (FORWARD, RUNS)},
    )
    found = judge(changed(seen, lambda each: looked(each, two)))
    assert [(each.rank, each.place) for each in found.culprits] == [(1, "train.py:57")]


def test_different_calls_of_rpc_are_not_a_mismatch() -> None:
    found = judge(trained(evidence(["waits", "waits"]), {0: (CALLS, MAIN), 1: (LEAVES, MAIN)}, {}))
    assert not found.named
    assert found.sentence == "The ranks wait for remote calls, and no thread shows which of them is at work."


@pytest.mark.parametrize(
    ("slept", "device", "still"),
    [((90.0, 70.0), False, 70.0), ((90.0, None), False, 2.0), ((90.0, 70.0), True, 2.0)],
)
def test_the_latest_wait_in_a_first_collective_shows_for_how_long(
    slept: tuple[float | None, ...], device: bool, still: float
) -> None:
    """Nothing was exchanged yet, and one that polls is woken again and again. A device waits elsewhere."""

    def member(each: JobMember) -> JobMember:
        assert each.rank is not None
        if each.rank == 2:
            return replace(each, b=each.b and with_main(each.b, switches=90, slept=0.1))
        wait = slept[each.rank]
        return looked(each, lambda look: with_main(replace(look, connections=()), slept=wait))

    found = judge(changed(evidence(["waits", "waits", "sleeps"], device=device), member))
    assert (found.stands.still, found.stands.at_least) == (still, True)
    assert bool(found.culprits) is (still > 60)
