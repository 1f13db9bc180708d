"""When a run is called faulty: limits that adapt, and no alarm that a slow machine alone could cause."""

from collections.abc import Sequence
from typing import cast

import pytest

from doctor.smoke.events import Phase, PhaseEvent, RankEnd
from doctor.smoke.limits import PATIENCE, SmokePatience, stall_limit
from doctor.smoke.messages import PageLine, Pages
from doctor.smoke.onhost.page import DTYPES, GROUPS, OPS, PHASES
from doctor.smoke.onhost.shape import ScheduledCall
from doctor.smoke.plan import SmokeWishes, plan_smoke
from doctor.smoke.result import Exit, Sample
from doctor.smoke.watch import Alarm, Watch
from tests.support.cases import cases
from tests.support.smoke.frozen import so_far
from tests.unit.smoke.test_plan import hosts, job

GLOO = PATIENCE["gloo"]


def watch(patience: SmokePatience = GLOO, number: int = 2) -> Watch:
    ranks = hosts(number, 2)
    watched = Watch(plan_smoke(job(ranks), list(ranks), SmokeWishes()), patience, began=100.0)
    for host in watched.hosts.values():
        host.ready, host.imported_at = True, 101.0
    for rank in watched.ranks:
        rank.pid = 1000 + rank.seat.rank
    return watched


def entry(watched: Watch, rank: int, phase: str, step: int, nth: int = 0) -> ScheduledCall:
    """The nth collective of a rank in a phase and step."""
    found = [e for e in watched.schedules[rank] if e.phase == phase and e.call.step == step]
    return found[nth]


def line(
    watched: Watch, rank: int, at: ScheduledCall, *, inside: bool = True, version: int = 0, state: str = "S"
) -> PageLine:
    call = at.call
    page = (
        version or at.position * 4,
        1000 + rank,
        PHASES.index(at.phase),
        call.step,
        at.position,
        GROUPS.index(call.group),
        at.seq,
        OPS.index(call.op),
        DTYPES.index(call.dtype),
        call.bytes,
        call.end + 1,
        call.tag,
        so_far(watched.schedules.get(rank, ())[: at.position]),
        int(inside),
    )
    return PageLine(rank, page, state=state)


def show(watched: Watch, now: float, lines: Sequence[PageLine], quiet: float = 0.0, gap: float = 0.0) -> None:
    for host in watched.hosts.values():
        mine = tuple(each for each in lines if watched.ranks[each.rank].seat.host == host.host)
        watched.pages(host, Pages(mine, gap=gap, quiet=quiet), now)


def everyone(watched: Watch, phase: str, step: int, nth: int = 0) -> list[PageLine]:
    return [line(watched, rank, entry(watched, rank, phase, step, nth)) for rank in range(len(watched.ranks))]


def test_ranks_that_move_cause_no_alarm() -> None:
    watched = watch()
    for tick in range(200):
        show(watched, 102 + tick, everyone(watched, "train", 1 + tick % 20, tick % 8))
        assert watched.alarm(102 + tick) is None


@cases
def test_the_limit_adapts_once_everything_was_done_before(
    phase: str, step: int, nth: int, gap: float, limit: float
) -> None:
    watched = watch()
    show(watched, 102, everyone(watched, phase, step, nth), gap=gap)
    assert watched.limit(0) == pytest.approx(limit)
    assert watched.alarm(102) is None
    show(watched, 103, everyone(watched, phase, step, nth), quiet=limit - 0.01, gap=gap)
    assert watched.alarm(103) is None
    show(watched, 104, everyone(watched, phase, step, nth), quiet=limit, gap=gap)
    alarm = watched.alarm(104)
    assert alarm is not None
    assert (alarm.kind, alarm.cell, alarm.sure) == ("still", 0, False)
    assert alarm.limit == pytest.approx(limit)


@pytest.mark.parametrize(("backend", "first"), [("gloo", 15), ("nccl", 180), ("hccl", 300), ("mccl", 30)])
def test_kernels_that_compile_at_first_use_are_given_time(backend: str, first: float) -> None:
    watched = watch(PATIENCE[backend])
    show(watched, 102, everyone(watched, "train", 0), quiet=first - 1, gap=0.1)
    assert watched.alarm(102) is None
    show(watched, 103, everyone(watched, "train", 0), quiet=first, gap=0.1)
    assert watched.alarm(103) is not None


def test_one_rank_whose_next_collective_is_new_extends_the_limit() -> None:
    watched = watch()
    entries = watched.schedules[0]
    known, new = entry(watched, 0, "train", 5), entry(watched, 0, "collectives", 0, 2)

    def sample(at: ScheduledCall) -> Sample:
        call = at.call
        where = (call.group, at.seq, call.op, call.dtype, call.bytes)
        return Sample(2, cast("Phase", at.phase), call.step, at.position, *where, True, 0.0)

    assert stall_limit(GLOO, 0.0, [(sample(known), entries), (sample(known), entries)]) == 1.0
    assert stall_limit(GLOO, 0.0, [(sample(known), entries), (sample(new), entries)]) == 15.0
    mccl = stall_limit(PATIENCE["mccl"], 0.28, [(sample(known), entries)])
    assert mccl == 15.0, "it compiles again where a rank computes alone, after pauses that were short"


def test_ranks_that_all_meet_are_given_time_but_not_for_one_that_has_yet_to_come() -> None:
    def at(step: int) -> tuple[Sample, Sequence[ScheduledCall]]:
        return Sample(2, "join", step, 0, "none", 0, "none", "none", 0, False, 0.0), ()

    assert stall_limit(PATIENCE["mccl"], 0.0, [at(1), at(1)]) == 75.0
    assert stall_limit(PATIENCE["mccl"], 0.0, [at(1), at(0)]) == 30.0
    assert stall_limit(GLOO, 0.0, [at(1), at(1)]) == 15.0


def test_a_host_that_still_moves_keeps_its_cell_from_hanging() -> None:
    watched = watch()
    show(watched, 102, everyone(watched, "train", 5), quiet=9.0)
    watched.hosts["node2"].quiet = 0.2
    assert watched.alarm(102) is None


def test_a_page_off_its_schedule_needs_two_samples() -> None:
    watched = watch()
    lines = everyone(watched, "train", 5)
    at = entry(watched, 1, "train", 5)
    lines[1] = line(watched, 1, at._replace(seq=at.seq + 1))
    show(watched, 102.0, lines)
    assert watched.alarm(102.0) is None, "one look can be a torn one"
    show(watched, 102.3, lines)
    assert watched.alarm(102.3) == Alarm("mismatch", 0)


def test_a_single_torn_sample_is_forgotten() -> None:
    watched = watch()
    at = entry(watched, 1, "train", 5)
    torn = everyone(watched, "train", 5)
    torn[1] = line(watched, 1, at._replace(seq=at.seq + 1))
    show(watched, 102.0, torn)
    show(watched, 102.3, everyone(watched, "train", 6))
    assert watched.alarm(102.3) is None


def test_a_process_that_stays_stopped_is_reported() -> None:
    watched = watch()
    lines = everyone(watched, "train", 5)
    lines[2] = line(watched, 2, entry(watched, 2, "train", 5), state="T")
    show(watched, 102.0, lines)
    assert watched.alarm(102.2) is None
    assert watched.alarm(102.31) == Alarm("stopped", 0)
    show(watched, 102.4, everyone(watched, "train", 5))
    assert watched.alarm(102.4) is None, "it went on"


def test_an_exit_leaves_the_others_time_for_their_last_words() -> None:
    watched = watch()
    show(watched, 102, everyone(watched, "train", 5))
    watched.ranks[3].exit = Exit(None, 9, 2.0)
    assert watched.alarm(102.0) is None
    assert watched.alarm(102.0 + GLOO.grace) == Alarm("exit", 0)


def test_a_rank_that_is_done_may_leave() -> None:
    watched = watch()
    show(watched, 102, everyone(watched, "train", 5))
    watched.ranks[3].take(RankEnd(), 102.0)
    watched.ranks[3].exit = Exit(0, None, 2.0)
    assert watched.alarm(110.0) is None
    watched.ranks[2].exit = Exit(0, None, 2.0)
    assert watched.alarm(110.0) is None
    assert watched.alarm(111.0) == Alarm("exit", 0), "it left without a word"


def test_an_agent_that_falls_silent_is_named() -> None:
    watched = watch()
    show(watched, 102, everyone(watched, "train", 5))
    watched.hosts["node2"].silence = 9.9
    assert watched.alarm(111.9) is None
    watched.hosts["node2"].silence = 10.1
    assert watched.alarm(112.1) == Alarm("trouble")
    assert watched.hosts["node2"].trouble == "its agent fell silent for 10 s"
    assert not watched.hosts["node1"].trouble


@cases
def test_a_slow_import_is_measured_by_the_others(imported: Sequence[float], limit: float) -> None:
    watched = watch(number=4)
    for host, seconds in zip(watched.hosts.values(), (*imported, None, None, None, None), strict=False):
        host.imported_at = None if seconds is None else 100.0 + seconds
    assert watched.alarm(100.0 + limit - 0.1) is None
    assert watched.alarm(100.0 + limit) == Alarm("trouble")
    late = [host.host for host in watched.hosts.values() if host.trouble]
    assert set(late) <= set(list(watched.hosts)[len(imported) :])


def test_hosts_that_are_reached_late_are_given_the_same_time() -> None:
    watched = watch(number=4)
    for number, host in enumerate(watched.hosts.values()):
        host.ready_at = 100.0 + 40 * number
        host.imported_at = None if number == 3 else host.ready_at + 1
    assert watched.alarm(232.9) is None
    assert watched.alarm(233.1) == Alarm("trouble")
    assert [host.host for host in watched.hosts.values() if host.trouble] == ["node4"]


def test_an_agent_must_answer_before_it_is_asked_for_more() -> None:
    watched = watch()
    late = watched.hosts["node2"]
    late.ready, late.imported_at = False, None
    assert watched.alarm(125.0) is None
    assert watched.alarm(125.3) == Alarm("trouble")
    assert late.trouble == "its agent did not answer within 25 s"


def test_ranks_are_started_soon_after_the_import() -> None:
    watched = watch()
    watched.ranks[3].pid = None
    assert watched.alarm(101.0 + GLOO.first - 0.1) is None
    assert watched.alarm(101.0 + GLOO.first) == Alarm("trouble")
    assert watched.hosts["node2"].trouble == "15 s after torch was imported its ranks were not started"


def test_a_host_whose_ranks_are_all_done_moves_no_more() -> None:
    """Its agent reports no stall there, so the other hosts decide."""
    watched = watch()
    show(watched, 102, everyone(watched, "train", 5), quiet=1.5)
    for rank in watched.ranks[2:]:
        rank.take(RankEnd(), 102.0)
        rank.exit = Exit(0, None, 2.0)
    watched.hosts["node2"].quiet = 0.0
    alarm = watched.alarm(103.0)
    assert alarm is not None
    assert alarm.kind == "still"


@cases
def test_the_last_report_of_a_silent_host_counts_for_a_moment(silent: Sequence[str], alarmed: bool) -> None:
    """If most of them are silent, the few others are more likely to be cut off."""
    watched = watch(number=4)
    show(watched, 102, everyone(watched, "train", 5), quiet=1.5)
    for name in ("node2", "node3", "node4"):
        watched.hosts[name].quiet = 0.0 if name == "node2" or name in silent else 1.5
    for name in silent:
        watched.hosts[name].silence = GLOO.mute
    assert (watched.alarm(102.0) is not None) == alarmed


@cases
def test_a_silent_host_is_asked_before_the_limit(quiet: float, silence: float, alarmed: bool) -> None:
    watched = watch()
    show(watched, 102, everyone(watched, "train", 5), quiet=quiet, gap=0.5)
    watched.hosts["node2"].silence = silence
    alarm = watched.alarm(102.0)
    assert (alarm is not None) == alarmed
    assert alarm is None or not alarm.sure


def test_a_silent_host_is_not_asked_while_torch_starts() -> None:
    watched = watch()
    show(watched, 102, [PageLine(rank, (2, 1, 1, *(0,) * 11)) for rank in range(4)], quiet=9.0)
    watched.hosts["node2"].silence = 9.0
    assert watched.alarm(111.0) is None


def test_when_all_hosts_are_silent_none_is_named() -> None:
    watched = watch()
    for host in watched.hosts.values():
        host.silence = GLOO.silent
    assert watched.alarm(102.0) == Alarm("interrupted")
    assert not any(host.trouble for host in watched.hosts.values())


def test_the_only_host_that_is_silent_is_named() -> None:
    watched = watch(number=1)
    watched.hosts["node1"].silence = GLOO.silent
    assert watched.alarm(102.0) == Alarm("trouble")


def test_ranks_that_are_ready_do_not_hang_while_another_cell_starts() -> None:
    ranks = hosts(4, 8)
    plan = plan_smoke(job(ranks), list(ranks), SmokeWishes())
    watched = Watch(plan, GLOO, began=100.0)
    for host in watched.hosts.values():
        host.ready, host.imported_at, host.quiet = True, 101.0, 20.0
    for rank in watched.ranks:
        rank.pid = 1000
        rank.take(PhaseEvent("ready"), 101.0)
    late = watched.hosts["node4"]
    late.imported_at = None
    for seat in plan.on("node4"):
        watched.ranks[seat.rank].entered.clear()
    assert watched.alarm(112.0) is None, "torch is still being imported"
    late.imported_at, late.quiet = 112.0, 0.5
    assert watched.alarm(113.0) is None, "its ranks are starting"
    late.quiet = 16.0
    assert watched.alarm(129.0) == Alarm("still", 1, 15.0, sure=False)


def test_ranks_that_import_torch_themselves_are_given_time() -> None:
    """Their pages are still blank."""
    watched = watch()
    for host in watched.hosts.values():
        host.ready_at, host.imported_at = 100.0, 106.0
    blank = [PageLine(rank, (0,) * 14) for rank in range(4)]
    show(watched, 110, blank)
    assert watched.limit(0) == pytest.approx(15.0 + 4 * 6.0)
    for host in watched.hosts.values():
        host.imported_at = 150.0
    assert watched.limit(0) == pytest.approx(60.0)


def test_a_process_that_ended_is_not_called_stopped() -> None:
    watched = watch()
    lines = everyone(watched, "train", 5)
    lines[2] = line(watched, 2, entry(watched, 2, "train", 5), state="T")
    show(watched, 102.0, lines)
    watched.ranks[2].take(RankEnd(), 102.1)
    watched.ranks[2].exit = Exit(0, None, 2.0)
    watched.ended(watched.ranks[2])
    show(watched, 102.2, [each for each in lines if each.rank != 2])
    assert watched.alarm(103.0) is None


def test_a_process_that_has_done_everything_may_be_stopped() -> None:
    watched = watch()
    lines = everyone(watched, "train", 5)
    lines[2] = line(watched, 2, entry(watched, 2, "train", 5), state="T")
    watched.ranks[2].take(RankEnd(), 102.0)
    show(watched, 102.1, lines)
    assert watched.alarm(103.0) is None


def test_the_phase_is_the_later_of_event_and_page() -> None:
    watched = watch()
    rank = watched.ranks[0]
    rank.take(PhaseEvent("join"), 102.0)
    assert rank.phase == "join"
    show(watched, 103.0, [line(watched, 0, entry(watched, 0, "train", 2))])
    assert rank.phase == "train"


def test_pages_count_only_for_a_hosts_own_ranks() -> None:
    watched = watch()
    at = entry(watched, 0, "train", 5)
    watched.pages(watched.hosts["node2"], Pages((line(watched, 0, at), line(watched, 4000, at))), 102.0)
    assert watched.ranks[0].sample is None
