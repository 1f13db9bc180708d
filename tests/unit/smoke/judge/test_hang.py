"""Runs that ended early: for every fault of the catalogue, only its culprit is named."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from doctor.mesh import Link, MeshResult
from doctor.model import Confidence, Severity, UnreachedHost, UnreachedKind
from doctor.smoke.judge.broken_connections import _shown
from doctor.smoke.judge.charge import SmokeCharge
from doctor.smoke.judge.crash import judge_crash
from doctor.smoke.judge.deviation import entries_of, off_schedule
from doctor.smoke.judge.hang import judge_hang, judge_hiccups
from doctor.smoke.judge.mismatch import judge_mismatch
from doctor.smoke.judge.phrases import call_words, shown_words, top_of
from doctor.smoke.judge.start import judge_start
from doctor.smoke.result import Exit, Hiccup, Sample, SmokePlan, SmokeResult
from tests.support.cases import cases, cases_with, from_cases
from tests.support.smoke.frozen import (
    Fault,
    altered,
    at,
    behind,
    died,
    extra,
    frozen,
    skipped,
    stuck,
    swapped,
)
from tests.support.smoke.results import changed, healthy, plan_of, with_end, with_host, with_rank

EIGHT = plan_of(4, 2, tp=2)
FOUR = plan_of(4)
TWO = plan_of(2)
ONE_HOST = plan_of(1, 4, tp=2)
CELLS = plan_of(4, 2, tp=2, cells=2)
GONE = ("RuntimeError", "[/pytorch/third_party/gloo/pair.cc:534] Connection closed by peer [10.0.0.{}]:41034")


def judged(result: SmokeResult) -> list[SmokeCharge]:
    return [
        *judge_start(result),
        *judge_crash(result),
        *judge_mismatch(result),
        *judge_hang(result),
        *judge_hiccups(result),
    ]


def one(result: SmokeResult) -> SmokeCharge:
    charges = judged(result)
    assert len(charges) == 1, charges
    return charges[0]


def position(
    plan: SmokePlan, rank: int, phase: str, group: str | None = None, step: int = 0, nth: int = 0
) -> int:
    seat = plan.seat(rank)
    return at(entries_of(plan.shape(seat.cell), seat.place), phase, group, step, nth)


@pytest.mark.parametrize("plan", [EIGHT, FOUR, TWO, ONE_HOST, CELLS, plan_of(1)])
def test_a_healthy_run_charges_no_rank(plan: SmokePlan) -> None:
    assert judged(healthy(plan)) == []


# One rank stands still while the others wait.


@cases_with(EIGHT=EIGHT, FOUR=FOUR, TWO=TWO, ONE_HOST=ONE_HOST, CELLS=CELLS)
def test_a_rank_that_is_stuck_outside_a_collective_is_named(
    plan: SmokePlan, rank: int, where: tuple[Any, ...], direct: tuple[int, ...]
) -> None:
    before = position(plan, rank, *where)
    cell = plan.seat(rank).cell
    charge = one(frozen(plan, {rank: stuck(before)}, cell=cell))
    assert (charge.check, charge.kind, charge.ranks, charge.hosts) == ("smoke-hang", "outside", (rank,), ())
    assert charge.confidence is Confidence.CERTAIN
    assert set(charge.victims) == set(plan.cells[cell]) - {rank}
    assert (charge.phase, charge.step) == (where[0], where[2] if where[0] == "train" else None)
    waits = next(e.text for e in charge.evidence if e.source == "who waits for whom")
    waiting = {int(line.split()[1]) for line in waits.splitlines() if line.endswith(f"for rank {rank}")}
    assert waiting == set(direct)


def test_the_summary_names_the_missed_collective_and_the_waiting_ranks() -> None:
    before = position(EIGHT, 3, "train", "dp", 20)
    result = with_rank(frozen(EIGHT, {3: stuck(before)}), 3, stack=STACK)
    charge = one(result)
    number = entries_of(EIGHT.shape(0), 3)[before - 1].seq
    assert charge.summary == (
        f"it never entered dp all_reduce {number} (float32, 150016 bytes) of training step 20, "
        "and ranks 1-2, 5, 7 wait for it"
    )
    assert "no move for 1.0 s" in charge.actual
    assert "sleeps and burns no CPU" in charge.actual
    stack = next(e for e in charge.evidence if e.source == "stack of rank 3")
    assert stack.text.splitlines()[0] == 'File "doctor/smoke/onhost/train.py", line 81 in step'
    assert "doctor smoke n2 --python /usr/bin/python3" in charge.commands


STACK = from_cases(__file__, "STACK", str)


def test_the_top_of_a_stack_is_its_main_thread() -> None:
    assert top_of("") == ""
    assert top_of("no thread at all") == "no thread at all"
    assert top_of(STACK).count("\n") == 1
    spied = '5\nThread 7 (idle): "worker"\n    x (a.py:1)\nThread 5 (active): "MainThread"\n    f (b.py:2)'
    assert top_of(spied) == "f (b.py:2)"


@cases
def test_the_process_is_described(state: str, cpu: float | None, words: str) -> None:
    result = frozen(TWO, {1: stuck(position(TWO, 1, "train", "dp", 7))})
    assert words in one(with_rank(result, 1, state=state, cpu=cpu)).actual


def test_a_whole_host_that_is_stuck_is_charged_once() -> None:
    faults = {rank: stuck(position(EIGHT, rank, "train", "tp", 20, 3)) for rank in (4, 5)}
    charge = one(frozen(EIGHT, faults))
    assert (charge.kind, charge.hosts, charge.ranks) == ("outside", ("n3",), (4, 5))
    assert set(charge.victims) == {0, 1, 2, 3, 6, 7}


def test_two_stuck_ranks_of_two_hosts_are_both_charged() -> None:
    faults = {rank: stuck(position(FOUR, rank, "train", "dp", 5)) for rank in (1, 3)}
    charges = judged(frozen(FOUR, faults))
    assert [charge.ranks for charge in charges] == [(1,), (3,)]
    assert all(charge.victims == (0, 2) for charge in charges)


def test_one_sample_accuses_no_rank() -> None:
    result = frozen(TWO, {1: stuck(position(TWO, 1, "train", "dp", 7))})
    charge = one(with_rank(result, 1, samples=result.ranks[1].samples[:1]))
    assert (charge.kind, charge.ranks, charge.hosts) == ("unproved", (), ())
    assert charge.confidence is Confidence.SUSPECT


def test_a_half_written_page_does_not_count_as_a_sample() -> None:
    result = frozen(TWO, {1: stuck(position(TWO, 1, "train", "dp", 7))})
    first, second = result.ranks[1].samples
    torn = replace(second, version=second.version + 1)
    assert one(with_rank(result, 1, samples=(first, torn))).kind == "unproved"


def test_a_rank_that_moved_between_the_samples_does_not_hang() -> None:
    result = frozen(FOUR, {1: stuck(position(FOUR, 1, "train", "dp", 7))})
    first, second = result.ranks[1].samples
    moved = with_rank(result, 1, samples=(first, replace(second, version=second.version + 2)))
    charge = one(moved)
    assert (charge.kind, charge.ranks, charge.hosts) == ("moved", (), ())


def test_if_all_ranks_are_outside_none_is_blamed() -> None:
    faults = {rank: stuck(position(FOUR, rank, "train", "dp", 5)) for rank in range(4)}
    charge = one(frozen(FOUR, faults))
    assert (charge.check, charge.ranks, charge.hosts) == ("smoke-hang", (), ())


# Never joined.


@pytest.mark.parametrize("phase", ["spawned", "start"])
@pytest.mark.parametrize(("plan", "rank"), [(EIGHT, 5), (TWO, 1), (CELLS, 6)])
def test_a_rank_that_never_gets_ready_is_named(plan: SmokePlan, rank: int, phase: str) -> None:
    mine = plan.seat(rank).cell
    faults = {other: behind("ready") for other in plan.cells[mine]} | {rank: behind(phase)}  # type: ignore[arg-type]
    result = frozen(plan, faults, cell=mine)
    for other in set(range(len(plan.seats))) - set(plan.cells[mine]):
        ready = result.ranks[plan.cells[mine][0]].samples
        result = with_rank(result, other, samples=ready, phase="ready")
    charge = one(result)
    assert (charge.check, charge.kind, charge.ranks) == ("smoke-not-started", "behind", (rank,))
    assert charge.confidence is Confidence.CERTAIN
    assert set(charge.victims) == set(range(len(plan.seats))) - {rank}
    # The watcher may see another cell stall first: it waits for the same rank.
    other_cell = (mine + 1) % len(plan.cells)
    assert one(with_end(result, "still", cell=other_cell, limit=1.0)).ranks == (rank,)


@cases_with(plan_of, EIGHT=EIGHT, TWO=TWO)
def test_a_rank_that_does_not_join_is_named(plan: SmokePlan, late: tuple[int, ...]) -> None:
    faults = {rank: behind("ready" if rank in late else "join") for rank in range(len(plan.seats))}
    charge = one(frozen(plan, faults))
    assert (charge.check, charge.kind, charge.ranks) == ("smoke-not-started", "behind", late)
    assert charge.hosts == ((plan.seat(late[0]).host,) if len(late) > 1 else ())
    assert "waiting to be told where to join" in charge.summary


@pytest.mark.parametrize(("step", "words"), [(0, "connecting to the store"), (1, "meeting its peers")])
def test_a_rank_that_is_behind_in_joining_is_named(step: int, words: str) -> None:
    result = frozen(FOUR, {rank: behind("join") for rank in range(4)})
    for rank in range(4):
        at = step if rank == 2 else step + 1
        samples = tuple(replace(sample, step=at) for sample in result.ranks[rank].samples)
        result = with_rank(result, rank, samples=samples)
    charge = one(result)
    assert (charge.check, charge.kind, charge.ranks) == ("smoke-not-started", "behind", (2,))
    assert words in charge.summary


def test_a_rank_that_never_reported_is_a_suspect() -> None:
    faults = {rank: behind("ready") for rank in range(4)}
    result = with_rank(frozen(FOUR, faults), 2, samples=(), phase="spawned", state="", started=None)
    charge = one(result)
    assert (charge.kind, charge.ranks, charge.confidence) == ("behind", (2,), Confidence.SUSPECT)
    assert "nothing was ever heard from it" in charge.summary


def test_the_last_one_seen_once_is_not_accused() -> None:
    faults = {0: behind("ready"), 1: behind("start")}
    result = frozen(TWO, faults)
    charge = one(with_rank(result, 1, samples=result.ranks[1].samples[1:]))
    assert (charge.kind, charge.ranks, charge.hosts) == ("unproved", (), ())


def test_all_ready_and_no_store_suspects_the_head() -> None:
    charge = one(frozen(FOUR, {rank: behind("ready") for rank in range(4)}))
    assert (charge.kind, charge.hosts, charge.confidence) == ("store", ("n1",), Confidence.SUSPECT)


def test_all_ranks_in_the_rendezvous_blames_none_and_shows_slow_names() -> None:
    result = frozen(FOUR, {rank: behind("join") for rank in range(4)})
    charge = one(with_host(result, "n3", reverse_dns=5.01))
    assert (charge.check, charge.kind, charge.ranks, charge.hosts) == (
        "smoke-not-started",
        "together",
        (),
        (),
    )
    assert "5.0 s" in next(e.text for e in charge.evidence if e.source == "reverse lookup on n3")


def test_the_first_collective_of_the_join_phase_is_a_join() -> None:
    faults = {1: Fault(halt=0)}
    charge = one(frozen(FOUR, faults))
    assert (charge.check, charge.kind, charge.ranks) == ("smoke-not-started", "behind", (1,))
    assert charge.confidence is Confidence.STRONG


@cases
def test_a_host_that_cannot_start_is_charged_with_its_own_message(text: str) -> None:
    result = with_end(frozen(FOUR, {rank: behind("spawned") for rank in range(4)}), "trouble")
    charge = one(with_host(result, "n2", trouble=text))
    assert (charge.check, charge.hosts, charge.ranks) == ("smoke-not-started", ("n2",), ())
    assert text in charge.summary
    assert charge.victims == (0, 2, 3)


def test_an_agent_that_falls_silent_in_mid_run_is_not_a_failed_start() -> None:
    result = with_end(frozen(FOUR, {2: stuck(position(FOUR, 2, "train", "dp", 5))}), "trouble")
    charge = one(with_host(result, "n3", trouble="its agent fell silent for 10 s"))
    assert (charge.check, charge.kind, charge.hosts) == ("smoke-crash", "agent", ("n3",))


@pytest.mark.parametrize("kind", ["lost", "still"])
def test_a_lost_host_is_not_a_hang(kind: str) -> None:
    result = frozen(FOUR, {2: stuck(position(FOUR, 2, "train", "dp", 5))}, kind=kind)
    lost = UnreachedHost(
        "n3", UnreachedKind.LOST, "the connection broke", "look at the network", ("ssh n3 uptime",)
    )
    charge = one(with_host(result, "n3", lost=lost))
    assert (charge.check, charge.kind, charge.hosts) == ("smoke-crash", "lost", ("n3",))
    assert charge.summary == "the connection to the host was lost during the run"
    assert charge.confidence is Confidence.STRONG
    assert charge.victims == (0, 1, 3)


def test_the_first_rank_to_die_is_named_although_a_host_was_lost_later() -> None:
    result = died(frozen(FOUR, {2: stuck(150)}, kind="exit"), 2, signal=9)
    result = with_host(result, "n4", lost=UnreachedHost("n4", UnreachedKind.LOST, "the connection broke", ""))
    assert [(c.kind, c.culprit_hosts(FOUR)) for c in judged(result)] == [
        ("lost", ("n4",)),
        ("killed", ("n3",)),
    ]


def test_an_unkillable_process_is_reported_with_the_hang() -> None:
    result = frozen(FOUR, {2: stuck(position(FOUR, 2, "train", "dp", 5))})
    text = "process 4002 cannot be killed (it is in uninterruptible sleep)"
    charges = judged(with_host(result, "n3", trouble=text))
    assert {(c.check, c.kind) for c in charges} == {("smoke-hang", "left-behind"), ("smoke-hang", "outside")}
    assert all(c.culprit_hosts(FOUR) == ("n3",) for c in charges)


# Stopped.


@pytest.mark.parametrize(("state", "word"), [("T", "a signal"), ("t", "a debugger")])
@pytest.mark.parametrize("plan", [EIGHT, TWO])
def test_a_stopped_process_is_named(plan: SmokePlan, state: str, word: str) -> None:
    result = frozen(plan, {1: stuck(position(plan, 1, "train", "dp", 9))}, kind="stopped")
    charge = one(with_rank(result, 1, state=state))
    assert (charge.check, charge.kind, charge.ranks, charge.step) == ("smoke-hang", "stopped", (1,), 9)
    assert word in charge.summary
    assert set(charge.victims) == set(range(len(plan.seats))) - {1}


def test_the_tracer_of_a_stopped_process_is_named() -> None:
    result = frozen(FOUR, {1: stuck(position(FOUR, 1, "train", "dp", 9))}, kind="stopped")
    stack = 'Traced by process 812 (py-spy)\nThread 4001 (idle): "MainThread"\n    step (train.py:9)'
    traced = one(with_rank(result, 1, state="t", stack=stack))
    assert "process 812 (py-spy), which traces it" in traced.summary
    assert "py-spy" not in one(with_rank(result, 1, state="T", stack=stack)).summary


def test_a_frozen_host_is_charged_once_with_its_ranks() -> None:
    result = frozen(EIGHT, {2: stuck(150), 3: stuck(150)}, kind="stopped")
    charge = one(with_rank(with_rank(result, 2, state="T"), 3, state="T"))
    assert (charge.hosts, charge.ranks) == (("n2",), (2, 3))


# Collectives that are not on the schedule.

DP20 = ("train", "dp", 20)


@pytest.mark.parametrize(
    ("fault", "kind", "words"),
    [
        (lambda p: skipped(p), "skip", "it left out dp all_reduce"),
        (lambda p: extra(p), "extra", "one collective too many"),
        (lambda p: swapped(p - 1), "order", "where tp all_reduce"),
        (lambda p: altered(p, bytes=75008), "shape", "with 75008 bytes instead of 150016"),
        (lambda p: altered(p, dtype="float64"), "dtype", "with float64 data instead of float32"),
        (lambda p: altered(p, op="broadcast"), "op", "called broadcast where its peers called all_reduce"),
    ],
)
def test_a_mismatch_names_the_rank_that_is_off_its_schedule(
    fault: Callable[[int], Fault], kind: str, words: str
) -> None:
    before = position(EIGHT, 3, *DP20)
    made = fault(before)
    charge = one(
        frozen(EIGHT, {3: replace(made, look=made.look or before + (kind == "extra"))}, kind="mismatch")
    )
    assert (charge.check, charge.kind, charge.ranks) == ("smoke-mismatch", kind, (3,))
    assert words in charge.summary
    assert charge.confidence is Confidence.CERTAIN
    assert set(charge.victims) == set(range(8)) - {3}
    due = entries_of(EIGHT.shape(0), 3)[made.look - 1 if made.look else before - 1 + (kind == "extra")]
    assert charge.expected == call_words(due)


@pytest.mark.parametrize("plan", [EIGHT, FOUR, TWO, CELLS])
@pytest.mark.parametrize("kind", ["skip", "extra"])
@pytest.mark.parametrize("where", [("train", "dp", 20), ("collectives", "world"), ("train", None, 3)])
def test_silent_mispairing_is_found_where_it_comes_to_light(
    plan: SmokePlan, kind: str, where: tuple[str, str | None, int]
) -> None:
    before = position(plan, 1, *where)
    fault = skipped(before) if kind == "skip" else extra(before)
    charge = one(frozen(plan, {1: fault}))
    assert (charge.check, charge.ranks) == ("smoke-mismatch", (1,))


@pytest.mark.slow
@pytest.mark.parametrize("plan", [EIGHT, FOUR, TWO])
@pytest.mark.parametrize("kind", ["skip", "extra"])
@pytest.mark.parametrize("reported", [True, False])
def test_a_mispairing_that_comes_to_light_late_is_called_what_it_is(
    plan: SmokePlan, kind: str, reported: bool
) -> None:
    """Up to five steps later, at each position. Without the rank's reports of its steps no step is named, and
    a collective that may only have come too early is not called one too many.
    """
    before = position(plan, 1, *DP20)
    fault = skipped(before) if kind == "skip" else extra(before)
    entries = entries_of(plan.shape(0), 1)
    last = next(e.position for e in entries if (e.phase, e.call.step) == ("train", 25))
    for look in range(before + (kind == "extra"), last):
        result = frozen(plan, {1: replace(fault, look=look)}, kind="mismatch")
        if not reported:
            silent = tuple(changed(step, entered={}) for step in result.ranks[1].steps)
            result = with_rank(result, 1, steps=silent)
        charge = one(result) if reported else next(iter(judge_mismatch(result)))
        assert charge.ranks == (1,)
        assert charge.kind == kind or (not reported and charge.kind == "order"), look
        assert charge.step == (20 if reported else None), look


def test_a_report_of_a_step_names_the_collective_that_was_left_out() -> None:
    before = position(EIGHT, 3, *DP20)
    charge = one(frozen(EIGHT, {3: replace(skipped(before), look=before + 60)}, kind="mismatch"))
    due = call_words(entries_of(EIGHT.shape(0), 3)[before - 1])
    assert (charge.summary, charge.expected) == (f"it left out {due}", due)
    charge = one(frozen(EIGHT, {3: replace(extra(before), look=before + 60)}, kind="mismatch"))
    words = "it called one collective too many: it entered 2 dp collectives in training step 20 instead of 1"
    assert (charge.summary, charge.step) == (words, 20)


@pytest.mark.parametrize(("inside", "words"), [(True, " of the audit phase"), (False, "")])
def test_the_last_collective_may_belong_to_an_earlier_phase(inside: bool, words: str) -> None:
    page = Sample(88, "audit", 0, 546, "tp", 440, "all_reduce", "float32", 131072, inside, 0.1)
    assert shown_words(page) == "tp all_reduce 440 (float32, 131072 bytes)" + words


@pytest.mark.parametrize("kind", ["still", "exit"])
def test_the_innocent_peer_that_aborts_is_a_victim(kind: str) -> None:
    before = position(EIGHT, 3, *DP20)
    result = frozen(EIGHT, {3: altered(before, dtype="float64")}, kind="mismatch")
    result = died(result, 1, signal=6, words="terminate called: op.preamble.length <= op.nbytes")
    result = died(result, 5, error=("RuntimeError", "unexpected buffer size"))
    if kind == "exit":
        result = died(result, 3, error=("RuntimeError", GONE[1].format(1)))
    charge = one(result)
    assert (charge.check, charge.kind, charge.ranks) == ("smoke-mismatch", "dtype", (3,))
    assert {1, 5} <= set(charge.victims)
    assert {"rank 1, in consequence", "rank 5, in consequence"} <= {e.source for e in charge.evidence}


def test_one_sample_off_the_schedule_accuses_no_living_rank() -> None:
    before = position(TWO, 1, *DP20)
    result = frozen(TWO, {1: altered(before, op="broadcast")}, kind="mismatch")
    last = result.ranks[1].samples[-1]
    right = replace(last, op="all_reduce", version=last.version - 2)
    assert judged(with_rank(result, 1, samples=(last,))) == []
    assert judged(with_rank(result, 1, samples=(right, last))) == []
    torn = replace(last, version=last.version + 1)
    assert judged(with_rank(result, 1, samples=(torn, torn))) == []
    # The page of a dead rank no longer changes: one sample is enough.
    dead = died(with_rank(result, 1, samples=(right, last)), 1, signal=6)
    assert one(dead).check == "smoke-mismatch"


def test_two_ranks_that_are_off_schedule_are_both_charged() -> None:
    before = position(FOUR, 1, *DP20)
    faults = {1: replace(altered(before, bytes=4), look=None), 2: altered(before, op="reduce")}
    charges = judged(frozen(FOUR, faults, kind="mismatch"))
    assert [(charge.ranks, charge.kind) for charge in charges] == [((1,), "shape"), ((2,), "op")]
    assert all(charge.victims == (0, 3) for charge in charges)


def test_a_host_whose_ranks_are_all_off_schedule_is_charged_once() -> None:
    plan = plan_of(3, 2)
    before = position(plan, 2, *DP20)
    faults = {2: replace(altered(before, bytes=4), look=None), 3: altered(before, bytes=4)}
    charge = one(frozen(plan, faults, kind="mismatch"))
    assert (charge.hosts, charge.ranks) == (("n2",), (2, 3))


def test_a_rank_that_skipped_a_collective_is_off_schedule_outside_too() -> None:
    shape = FOUR.shape(0)
    entries = entries_of(shape, 1)
    due = entries[position(FOUR, 1, "train", "dp", 5) - 1]
    last = entries[due.position - 2]
    page = Sample(
        10, "train", 6, last.position, last.call.group, last.seq, last.call.op, last.call.dtype,
        last.call.bytes, False, 0.0,
    )  # fmt: skip
    found = off_schedule(page, shape, 1)
    assert found
    assert (found.kind, found.due) == ("skip", due)
    assert off_schedule(replace(page, step=5), shape, 1) is None
    early = off_schedule(replace(page, step=3), shape, 1)
    assert early
    assert early.kind == "extra"
    assert off_schedule(replace(page, version=11), shape, 1) is None


def test_a_collective_after_the_end_is_off_schedule() -> None:
    shape = TWO.shape(0)
    last = healthy(TWO).ranks[0].samples[-1]
    assert off_schedule(last, shape, 0) is None
    found = off_schedule(replace(last, position=last.position + 1, inside=True), shape, 0)
    assert found
    assert (found.kind, found.due) == ("extra", None)


# Died.


@cases
@pytest.mark.parametrize("plan", [EIGHT, TWO])
def test_the_first_to_die_is_named_and_its_peers_are_victims(
    plan: SmokePlan, how: dict[str, object], kind: str, words: str
) -> None:
    result = frozen(plan, {1: stuck(position(plan, 1, "train", "dp", 9))}, kind="exit")
    result = died(result, 1, **how)  # type: ignore[arg-type]
    result = died(result, 0, error=(GONE[0], GONE[1].format(1)))
    if plan is EIGHT:
        result = died(result, 6, signal=6, words="gloo: Connection reset by peer [10.0.0.1]:5")
    charge = one(result)
    assert (charge.check, charge.kind, charge.ranks, charge.step) == ("smoke-crash", kind, (1,), 9)
    assert words in charge.summary
    assert set(charge.victims) == set(range(len(plan.seats))) - {1}
    assert "rank 0, in consequence" in {e.source for e in charge.evidence}


def test_a_kill_is_a_surer_cause_than_native_code_or_an_exception() -> None:
    result = frozen(FOUR, {2: stuck(position(FOUR, 2, "train", "dp", 9))}, kind="exit")
    result = died(result, 0, signal=6, words="terminate called")
    result = died(result, 1, error=("ValueError", "nonsense came in"))
    assert one(result).ranks == (1,)
    result = died(result, 3, code=1)
    assert one(result).ranks == (3,)
    assert one(died(result, 2, signal=9)).ranks == (2,)


def test_if_all_ranks_of_a_host_are_killed_the_host_is_charged_once() -> None:
    result = frozen(EIGHT, {4: stuck(200), 5: stuck(200)}, kind="exit")
    charge = one(died(died(result, 4, signal=9), 5, signal=9))
    assert (charge.hosts, charge.ranks) == (("n3",), (4, 5))
    assert any("out of memory" in command for command in charge.commands)


@cases
def test_an_exception_of_python_was_not_killed(error: tuple[str, str], remedy: str | None) -> None:
    """Only an exception that says so ran out of memory."""
    charge = one(died(frozen(TWO, {1: stuck(200)}, kind="exit"), 1, error=error))
    assert (charge.check, charge.remedy, charge.commands) == ("smoke-crash", remedy, ())


NUMPY = from_cases(__file__, "NUMPY", str)


@pytest.mark.parametrize(
    ("words", "advice"),
    [
        (NUMPY, "; it was told: If you are a user of the module, the easiest solution will be to downgrade"),
        (NUMPY.replace("downgrade", "go back").replace("upgrade", "renew"), ""),
        ("", ""),
    ],
)
def test_what_a_library_advises_on_stderr_is_said(words: str, advice: str) -> None:
    """MindSpore beside NumPy 2 raises something obscure after that."""
    error = (
        "SystemError",
        "<method 'reshape' of 'numpy.ndarray' objects> returned a result with an exception set",
    )
    charge = one(died(frozen(TWO, {1: stuck(5)}, kind="exit"), 1, error=error, words=words))
    assert f"it stopped with SystemError: {error[1]}{advice}" in charge.summary
    assert ("it was told" in charge.summary) == bool(advice)


def test_an_exception_of_all_ranks_blames_none() -> None:
    result = frozen(FOUR, {rank: stuck(5) for rank in range(4)}, kind="exit")
    for rank in range(4):
        result = died(result, rank, error=("RuntimeError", "no such operator"))
    charge = one(result)
    assert (charge.ranks, charge.hosts) == ((), ())
    assert charge.summary.endswith("and so did all ranks")


def test_last_words_and_trace_are_evidence() -> None:
    result = frozen(TWO, {1: stuck(200)}, kind="exit")
    sources = {e.source for e in one(died(result, 1, code=1, words="a\nSegmentation fault")).evidence}
    assert "last words of rank 1" in sources
    sources = {e.source for e in one(died(result, 1, error=("ValueError", "x"))).evidence}
    assert "trace of rank 1" in sources


# Hung inside, or connections broke: the sockets decide.


def mesh(plan: SmokePlan, broken: Callable[[str, str], bool], outcome: str = "dropped") -> MeshResult:
    links = tuple(
        Link(a, b, plan.addresses[b], 40000, "ephemeral", outcome if broken(a, b) else "ok")  # type: ignore[arg-type]
        for a in plan.hosts
        for b in plan.hosts
        if a != b
    )
    return MeshResult("full", plan.head, (), links, (), (), 1.0)


def cut_off(plan: SmokePlan, host: str, before: int) -> SmokeResult:
    """From this position on, no collective with members on the host and elsewhere ends."""
    shape = plan.shape(plan.seat(plan.on(host)[0].rank).cell)
    places = {seat.place for seat in plan.on(host)}

    def blocked(key: tuple[tuple[int, ...], int], entry: object) -> bool:
        return bool(places & set(key[0])) and not set(key[0]) <= places and entry.position >= before  # type: ignore[attr-defined]

    assert shape.world > 1
    return frozen(plan, {}, cell=plan.seat(plan.on(host)[0].rank).cell, blocked=blocked)


@pytest.mark.parametrize("plan", [EIGHT, FOUR])
@pytest.mark.parametrize("way", ["both", "inbound", "outbound"])
def test_a_host_that_is_cut_off_is_named_by_the_sockets(plan: SmokePlan, way: str) -> None:
    result = cut_off(plan, "n3", position(plan, 0, "train", "dp", 9))

    def broken(source: str, target: str) -> bool:
        return (source == "n3" and way != "inbound") or (target == "n3" and way != "outbound")

    charge = one(replace(result, mesh=mesh(plan, broken)))
    assert (charge.check, charge.kind, charge.hosts, charge.ranks) == ("smoke-hang", "network", ("n3",), ())
    assert (charge.phase, charge.step, charge.undecided) == ("train", 9, False)
    assert "get no answer" in charge.summary
    assert not {seat.rank for seat in plan.on("n3")} & set(charge.victims)


def test_between_two_hosts_it_is_undecided() -> None:
    result = cut_off(TWO, "n2", position(TWO, 0, "train", "dp", 9))
    charge = one(replace(result, mesh=mesh(TWO, lambda *_: True)))
    assert (charge.hosts, charge.undecided, charge.confidence) == (("n1", "n2"), True, Confidence.SUSPECT)


def test_if_no_host_reaches_another_the_cause_is_common() -> None:
    result = cut_off(FOUR, "n2", position(FOUR, 0, "train", "dp", 9))
    charge = one(replace(result, mesh=mesh(FOUR, lambda *_: True)))
    assert (charge.kind, charge.hosts, charge.undecided) == ("network", (), False)


@pytest.mark.parametrize("known", [True, False])
def test_all_ranks_inside_with_healthy_sockets_names_none(known: bool) -> None:
    result = cut_off(EIGHT, "n3", position(EIGHT, 0, "train", "dp", 9))
    charge = one(replace(result, mesh=mesh(EIGHT, lambda *_: False) if known else None))
    assert (charge.check, charge.kind, charge.ranks, charge.hosts) == ("smoke-hang", "inside", (), ())
    assert charge.confidence is Confidence.SUSPECT
    assert "all inside dp all_reduce" in charge.summary
    assert ("the hosts reach each other" if known else "the network was not tested") in charge.summary
    assert any(e.source == "who waits for whom" for e in charge.evidence)


Pairs = set[frozenset[str]]


def though_reached(plan: SmokePlan) -> SmokeResult:
    """The ranks of n3 hang in a collective with the others, and all hosts reach each other."""
    result = cut_off(plan, "n3", position(plan, 0, "train", "dp", 9))
    return replace(result, mesh=mesh(plan, lambda *_: False))


def with_connections(result: SmokeResult, cut: Pairs, connected: Pairs | None = None) -> SmokeResult:
    """Two connections between each pair of `connected` hosts, of which both ends are gone if it is `cut`; and
    one to a process that is not a rank.
    """
    hosts = result.plan.hosts

    def end(near: str, far: str, which: int) -> str:
        one, other = hosts.index(near), hosts.index(far)
        return f"0{one + 1}00000A:{which + other:04X} 0{other + 1}00000A:{which + one:04X}"

    def ends(host: str, broken: bool) -> tuple[str, ...]:
        pairs = {other: frozenset({host, other}) for other in hosts if other != host}
        return tuple(
            end(host, other, which)
            for other, pair in pairs.items()
            if (connected is None or pair in connected) and (pair in cut) == broken
            for which in (8000, 9000)
        ) + (("0100000A:0001 0900000A:0001",) if broken else ())

    for host in hosts:
        result = with_host(result, host, kept=ends(host, False), broken=ends(host, True))
    return result


def pairs_of(host: str, *others: str) -> Pairs:
    return {frozenset({host, other}) for other in others}


@pytest.mark.parametrize("plan", [EIGHT, FOUR])
def test_a_host_whose_connections_broke_while_others_kept_theirs_is_named(plan: SmokePlan) -> None:
    charge = one(with_connections(though_reached(plan), pairs_of("n3", "n1", "n2", "n4")))
    assert (charge.check, charge.kind, charge.hosts, charge.ranks) == (
        "smoke-hang",
        "connection",
        ("n3",),
        (),
    )
    assert (charge.phase, charge.step, charge.confidence) == ("train", 9, Confidence.STRONG)
    assert not {seat.rank for seat in plan.on("n3")} & set(charge.victims)
    assert charge.evidence[0].text == "n1 - n3, n2 - n3, n3 - n4"
    assert charge.evidence[1].text == "n1 - n2, n1 - n4, n2 - n4"


@cases
def test_connections_that_broke_prove_nothing_against_one_host(
    cut: Pairs, connected: Pairs | None, suspects: tuple[str, ...] | None
) -> None:
    charge = one(with_connections(though_reached(FOUR), cut, connected))
    assert charge.kind == ("inside" if suspects is None else "connection")
    assert (charge.hosts, charge.confidence) == (suspects or (), Confidence.SUSPECT)
    assert charge.undecided == bool(suspects)


def test_a_connection_of_which_one_end_is_left_is_broken() -> None:
    result = though_reached(FOUR)
    lost = with_connections(result, pairs_of("n3", "n1", "n2", "n4"))
    (n3,) = [each for each in lost.hosts if each.host == "n3"]
    whole = with_connections(result, set())
    charge = one(with_host(whole, "n3", kept=n3.kept, broken=n3.broken))
    assert (charge.kind, charge.hosts) == ("connection", ("n3",))


def test_a_connection_that_only_one_of_its_hosts_showed_proves_nothing() -> None:
    result = with_connections(though_reached(FOUR), pairs_of("n3", "n1", "n2", "n4"))
    assert one(with_host(result, "n3", kept=(), broken=())).kind == "inside"


def test_connections_of_a_rank_that_has_ended_prove_nothing() -> None:
    result = with_connections(though_reached(FOUR), pairs_of("n3", "n1", "n2", "n4"))
    result = with_rank(result, 2, lambda seen: replace(seen, exit=Exit(0, None, 3.0), done=True))
    assert one(result).kind == "inside"


def test_a_rank_that_keeps_others_waiting_is_named_whatever_connections_broke() -> None:
    result = frozen(FOUR, {1: stuck(position(FOUR, 1, "train", "dp", 9))})
    charge = one(with_connections(result, pairs_of("n3", "n1", "n2", "n4")))
    assert (charge.kind, charge.ranks) == ("outside", (1,))


def test_a_hang_inside_one_host_blames_that_host() -> None:
    charge = one(frozen(ONE_HOST, {}, blocked=lambda _, entry: entry.position >= 200))
    assert (charge.kind, charge.hosts) == ("inside", ("n1",))


def test_a_hang_among_ranks_of_one_host_blames_that_host_though_all_wait() -> None:
    result = frozen(EIGHT, {}, blocked=lambda key, entry: key[0] == (4, 5) and entry.position >= 200)
    charge = one(replace(result, mesh=mesh(EIGHT, lambda *_: False)))
    assert (charge.kind, charge.hosts, charge.confidence) == ("inside", ("n3",), Confidence.STRONG)
    assert charge.summary.startswith("ranks 4-5 are all inside tp all_reduce")


@pytest.mark.parametrize("sender", ["n1", "n3"])
@pytest.mark.parametrize("known", [True, False])
def test_ranks_that_got_their_data_and_left_are_members_too(known: bool, sender: str) -> None:
    """gloo lets a rank go that needs no more from the others: only the ranks on n3 still wait for theirs."""
    before = position(EIGHT, 0, "collectives", "world", nth=3)
    others = {0, 1, 2, 3, 6, 7}
    result = frozen(EIGHT, {}, blocked=lambda _, entry: entry.position == before, leaving=others)
    seen = replace(
        mesh(EIGHT, lambda *_: False),
        links=tuple(
            replace(
                link, carried="out" if link.source == sender else "back" if link.target == sender else "both"
            )
            for link in mesh(EIGHT, lambda *_: False).links
        ),
    )
    charge = one(replace(result, mesh=seen if known else None))
    assert charge.summary.startswith("ranks 4-5 are all inside world")
    if known:
        assert (charge.kind, charge.hosts, charge.undecided) == ("network", (sender,), False)
        assert "the way from it to other hosts loses large packets" in charge.summary
    else:
        assert (charge.kind, charge.hosts, charge.confidence) == ("inside", (), Confidence.SUSPECT)


def test_a_host_that_cannot_join_is_named_by_the_sockets_not_by_the_last_rank() -> None:
    result = frozen(FOUR, {1: behind("join"), 2: behind("join")})
    charge = one(replace(result, mesh=mesh(FOUR, lambda a, b: "n2" in (a, b))))
    assert (charge.check, charge.kind, charge.hosts) == ("smoke-hang", "network", ("n2",))


@pytest.mark.parametrize("prefix", ["", "::ffff:"])
def test_broken_connections_name_the_host_that_they_have_in_common(prefix: str) -> None:
    result = frozen(FOUR, {rank: stuck(200) for rank in range(4)}, kind="exit")
    for rank, peer in {0: 3, 1: 3, 3: 3, 2: 1}.items():
        text = f"Connection reset by peer [{prefix}10.0.0.{peer}]:41034"
        result = died(result, rank, error=("RuntimeError", text))
    charge = one(replace(result, mesh=mesh(FOUR, lambda *_: False)))
    assert (charge.check, charge.kind, charge.hosts) == ("smoke-hang", "connection", ("n3",))
    assert charge.confidence is Confidence.SUSPECT
    # If the sockets still fail, they decide first.
    assert one(replace(result, mesh=mesh(FOUR, lambda a, b: "n2" in (a, b)))).hosts == ("n2",)


def test_an_address_that_only_starts_like_a_host_does_not_belong_to_it() -> None:
    result = frozen(FOUR, {rank: stuck(200) for rank in range(4)}, kind="exit")
    for rank in (0, 1, 3):
        result = died(result, rank, error=("RuntimeError", "Connection reset by peer [10.0.0.30]:4"))
    assert one(result).hosts == ()


def test_between_two_hosts_a_broken_connection_is_undecided() -> None:
    result = frozen(TWO, {rank: stuck(150) for rank in range(2)}, kind="exit")
    charge = one(died(result, 0, error=(GONE[0], GONE[1].format(2))))
    assert (charge.hosts, charge.undecided) == (("n1", "n2"), True)


# Cells, limits, ends.


@pytest.mark.parametrize("cell", [0, 1])
def test_only_the_sick_cell_is_blamed(cell: int) -> None:
    rank = CELLS.cells[cell][1]
    charge = one(frozen(CELLS, {rank: stuck(position(CELLS, rank, "train", "dp", 9))}, cell=cell))
    assert charge.ranks == (rank,)
    assert set(charge.victims) == set(CELLS.cells[cell]) - {rank}


def test_two_sick_cells_are_both_blamed() -> None:
    first = frozen(CELLS, {1: stuck(position(CELLS, 1, "train", "dp", 9))}, cell=0)
    second = frozen(CELLS, {5: stuck(position(CELLS, 5, "train", "dp", 9))}, cell=1)
    both = replace(first, ranks=(*first.ranks[:4], *second.ranks[4:]))
    assert [charge.ranks for charge in judged(both)] == [(1,), (5,)]
    assert len(judged(died(died(both, 1, signal=9), 5, signal=11))) == 2


def test_a_cell_that_stalled_for_less_than_the_limit_is_not_blamed() -> None:
    first = frozen(CELLS, {1: stuck(position(CELLS, 1, "train", "dp", 9))}, cell=0)
    second = frozen(CELLS, {5: stuck(position(CELLS, 5, "train", "dp", 9))}, cell=1)
    both = replace(first, ranks=(*first.ranks[:4], *second.ranks[4:]))
    assert [charge.ranks for charge in judged(with_end(both, "still", cell=0, limit=5.0))] == [(1,)]


def test_a_slow_run_names_no_rank() -> None:
    moving = frozen(CELLS, {}, cell=0, kind="deadline")
    for rank in CELLS.cells[0]:
        other = moving.ranks[4]
        pages = tuple(replace(page, about=-1) for page in other.samples)
        moving = with_rank(moving, rank, samples=pages, done=False, exit=None, phase=other.phase)
    charge = one(with_end(moving, "deadline", 120.0))
    assert (charge.check, charge.kind, charge.ranks, charge.hosts) == ("smoke-hang", "deadline", (), ())
    assert charge.severity is Severity.WARN, "a slow machine is not at fault"
    assert "120 s" in charge.summary


def test_the_deadline_may_come_before_the_limit_of_a_hang() -> None:
    result = frozen(FOUR, {1: stuck(position(FOUR, 1, "train", "dp", 9))})
    assert one(with_end(result, "deadline", 10.0)).ranks == (1,)


@pytest.mark.parametrize("kind", ["interrupted", "done"])
def test_an_interrupted_run_is_not_judged(kind: str) -> None:
    result = frozen(FOUR, {1: stuck(position(FOUR, 1, "train", "dp", 9))})
    assert judged(with_end(result, kind)) == []
    assert judged(with_end(died(result, 1, signal=9), kind)) == []


def test_a_hiccup_is_a_warning_that_names_no_rank() -> None:
    charge = one(replace(healthy(FOUR), hiccups=(Hiccup(0, "train", 3.2),)))
    assert (charge.check, charge.kind, charge.severity) == ("smoke-hang", "hiccup", Severity.WARN)
    assert (charge.ranks, charge.hosts) == ((), ())
    assert "3.2 s" in charge.summary


def test_the_only_rank_of_a_run_is_named() -> None:
    plan = plan_of(hosts=1, each=1)
    page = Sample(88, "train", 9, 0, "none", 0, "none", "none", 0, False, 15.0)
    result = with_end(
        with_rank(healthy(plan), 0, samples=(page, page), done=False, exit=None), "still", cell=0
    )
    charge = one(result)
    assert (charge.check, charge.ranks, charge.hosts) == ("smoke-hang", (0,), ("n1",))
    assert charge.summary.startswith("it stands still")


# Properties.

PLANS = [EIGHT, FOUR, TWO, ONE_HOST, plan_of(2, 4, tp=4), plan_of(3, 2, tp=2)]


@pytest.mark.slow
@settings(deadline=None, max_examples=60)
@given(st.data())
def test_wherever_a_rank_sticks_only_it_is_named(data: st.DataObject) -> None:
    plan = data.draw(st.sampled_from(PLANS))
    rank = data.draw(st.sampled_from(range(len(plan.seats))))
    entries = entries_of(plan.shape(0), plan.seat(rank).place)
    before = data.draw(st.integers(1, len(entries)))
    charge = one(frozen(plan, {rank: stuck(before)}))
    assert charge.ranks == (rank,)
    assert charge.check == ("smoke-not-started" if before == 1 else "smoke-hang")


@pytest.mark.slow
@settings(deadline=None, max_examples=60)
@given(st.data())
def test_wherever_a_rank_skips_or_repeats_only_it_is_named(data: st.DataObject) -> None:
    plan = data.draw(st.sampled_from(PLANS))
    rank = data.draw(st.sampled_from(range(len(plan.seats))))
    entries = entries_of(plan.shape(0), plan.seat(rank).place)
    before = data.draw(st.integers(1, len(entries) - 1))
    fault = data.draw(st.sampled_from([skipped, extra]))(before)
    charge = one(frozen(plan, {rank: fault}))
    assert (charge.check, charge.ranks) == ("smoke-mismatch", (rank,))


@pytest.mark.slow
@settings(deadline=None, max_examples=60)
@given(st.data())
def test_any_page_can_be_judged(data: st.DataObject) -> None:
    result = frozen(FOUR, {1: stuck(150)}, kind=data.draw(st.sampled_from(["still", "deadline", "exit"])))
    pages = st.builds(
        Sample,
        version=st.integers(0, 9),
        phase=st.sampled_from(["spawned", "ready", "join", "train", "bandwidth", "done"]),
        step=st.integers(0, 40),
        position=st.integers(0, 2000),
        group=st.sampled_from(["none", "world", "dp", "tp", "pair"]),
        seq=st.integers(0, 1000),
        op=st.just("all_reduce"),
        dtype=st.just("float32"),
        bytes=st.integers(0, 2**40),
        inside=st.booleans(),
        still=st.floats(0, 10),
    )
    for rank in range(4):
        result = with_rank(
            result,
            rank,
            samples=tuple(data.draw(st.lists(pages, max_size=2))),
            state=data.draw(st.sampled_from("RSDTtZ?")),
            done=data.draw(st.booleans()),
        )
    for charge in judged(result):
        assert charge.summary
        assert not set(charge.ranks) & set(charge.victims)


def test_connections_beyond_the_first_dozen_are_counted() -> None:
    pairs = tuple(("n1", f"n{n}") for n in range(2, 16))
    (many,), (few,) = _shown("broke", pairs), _shown("broke", pairs[:12])
    assert (many.text.endswith("n1 - n13 (+2)"), few.text.endswith("n1 - n13")) == (True, True)


@pytest.mark.parametrize("of_job", [{"pp": 4}, {"cp": 4}])
def test_a_rank_that_does_not_come_to_an_edge_of_the_layout_is_named(of_job: dict[str, int]) -> None:
    """Its neighbour waits for it, and the neighbour's neighbour for that one."""
    plan = replace(plan_of(4), layout=of_job)
    edge = next(each for each in entries_of(plan.shape(0), 2) if each.call.group == "pair")
    charge = one(frozen(plan, {2: stuck(edge.position)}))
    assert (charge.kind, charge.ranks) == ("outside", (2,))
    assert {1, 3} <= {*charge.victims}
