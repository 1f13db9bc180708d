"""Ranks whose training runs in another thread than the main one: actors of Ray, and workers of RPC."""

from msgspec.structs import replace

from doctor.hang.judge import judge
from doctor.hang.judge.judgement import Cause, HangState
from doctor.live.evidence import Frame, JobMember, LiveEvidence, Look, PythonThread
from tests.support.hang.written import FORWARD, LIB, MAIN, NANOSLEEP, changed, evidence

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


def test_different_calls_of_rpc_are_not_a_mismatch() -> None:
    found = judge(trained(evidence(["waits", "waits"]), {0: (CALLS, MAIN), 1: (LEAVES, MAIN)}, {}))
    assert not found.named
    assert found.sentence == "The ranks wait for remote calls, and no thread shows which of them is at work."
