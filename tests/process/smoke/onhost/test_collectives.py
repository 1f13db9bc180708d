"""The collectives and bandwidth phases, on real ranks."""

from __future__ import annotations

from collections import defaultdict
from itertools import chain, combinations
from typing import Any

import msgspec
import pytest

from doctor.smoke.events import Collectives, CollectiveTimes, Event, Segments, Transfer
from doctor.smoke.onhost import bandwidthplan
from doctor.smoke.onhost.bandwidthplan import bandwidth_calls, lots
from doctor.smoke.onhost.collectiveplan import collective_calls
from doctor.smoke.onhost.schedule import join_calls
from doctor.smoke.onhost.shape import CellShape, numbered
from doctor.smoke.onhost.sweepplan import LEAST, MOST, SIZES, TIMED, scopes
from tests.support.cases import cases, from_cases
from tests.support.smoke.marks import Marks, run_phases

SHAPES = from_cases(__file__, "SHAPES", list[CellShape], CellShape)


def events(marks: Marks) -> list[Any]:
    return [msgspec.convert(event, Event) for event in marks.events]


def transfers(marks: Marks) -> list[Transfer]:
    return [event for event in events(marks) if isinstance(event, Transfer)]


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: f"{shape.dp}x{shape.tp}")
def test_real_ranks_do_what_the_plan_says_and_find_nothing_wrong(shape: CellShape) -> None:
    ranks = run_phases(shape, "join", "collectives", "bandwidth")
    assert len(ranks) == shape.world
    for place, marks in enumerate(ranks):
        calls = {
            "join": join_calls(shape, place),
            "collectives": collective_calls(shape, place),
            "bandwidth": bandwidth_calls(shape, place),
        }
        assert marks.entered == [
            (entry.call.group, entry.seq, entry.call.op, entry.call.dtype, entry.call.bytes)
            for entry in numbered(calls)
        ]
        first, *pairs = events(marks)
        assert first == Collectives(done=len(calls["collectives"]))
        if pairs:
            told = pairs.pop()
            assert isinstance(told, Segments)
            assert told.peers["127.0.0.1"][0] > 0
        assert [(pair.peer, pair.round, pair.stage, pair.way) for pair in pairs] == [
            *chain.from_iterable(lots(shape, place))
        ]
        for pair in pairs:
            assert isinstance(pair, Transfer)
            enough = bandwidthplan.LONG_ENOUGH if pair.way == "both" else bandwidthplan.LONG_ENOUGH_ONE_WAY
            assert pair.seconds >= enough
            assert pair.bytes >= bandwidthplan.PIECE
            assert 0 < pair.rtt < 1
        assert (marks.wait > 0) == (shape.world > 1)


@pytest.mark.parametrize("at_once", [0, 1])
def test_real_pairs_send_one_after_the_other_if_only_one_may(at_once: int) -> None:
    """And side by side if nobody says so."""
    shape = CellShape(4, 1, (1,) * 4, 1, 7, turns=1, pairs_at_once=at_once)
    sent: set[tuple[float, float, frozenset[int]]] = set()
    for place, marks in enumerate(run_phases(shape, "join", "bandwidth")):
        told = zip(events(marks), marks.moments, strict=True)
        pairs = [(said, at) for said, at in told if isinstance(said, Transfer)]
        assert len(pairs) == 6, "three peers, each way"
        sent |= {(at - said.seconds, at, frozenset((place, said.peer))) for said, at in pairs}
    ordered = sorted(sent, key=lambda one: one[0])
    overlaps = [
        (one, two) for one, two in combinations(ordered, 2) if one[1] > two[0] and not one[2] & two[2]
    ]
    assert bool(overlaps) is (at_once == 0)


def test_both_ends_of_a_transfer_measure_the_same() -> None:
    shape = CellShape(2, 1, (1, 1), 1, 7)
    here, there = map(transfers, run_phases(shape, "bandwidth"))
    assert [(pair.bytes, pair.seconds) for pair in here] == [(pair.bytes, pair.seconds) for pair in there]


@cases
def test_the_rank_that_has_a_wrong_result_reports_it(op: str) -> None:
    shape = CellShape(3, 1, (3,), 1, 7)
    ranks = run_phases(shape, "collectives", breaking=op, rank=1)
    reports = [events(marks)[0].wrong for marks in ranks]
    first = [min((wrong.position for wrong in report), default=10**9) for report in reports]
    assert first.index(min(first)) == 1
    assert first.count(min(first)) == 1
    wrong = reports[1][0]
    call = collective_calls(shape, 1)[wrong.position - 1]
    assert wrong.name.startswith(f"{op} of 1 {call.dtype}" if op == "all_reduce" else f"{op} of ")
    assert (call.op, call.group, wrong.group) == (op, "world", "world")
    assert float(wrong.got) == float(wrong.expected) + 1


def test_both_ends_of_an_edge_are_suspects_of_what_arrived_wrong() -> None:
    """Whoever receives wrong data may have received it right, and its peer sent it wrong."""
    shape = CellShape(4, 1, (2, 2), 1, 7, pp=4)
    ranks = run_phases(shape, "collectives", breaking="edge", rank=2)
    wrong = [(place, each) for place, marks in enumerate(ranks) for each in events(marks)[0].wrong]
    assert [(place, each.group, each.name) for place, each in wrong] == [
        (1, "pair", "exchange of 65536 float32 from 2"),
        (3, "pair", "exchange of 65536 float32 from 2"),
    ]


def test_parts_in_the_wrong_order_are_reported_with_their_right_sources() -> None:
    ranks = run_phases(CellShape(2, 2, (4,), 1, 7), "collectives", breaking="order", rank=2)
    reports = [events(marks)[0].wrong for marks in ranks]
    assert [bool(report) for report in reports] == [False, False, True, False]
    assert any(wrong.name.endswith(" from 0") for wrong in reports[2])
    assert {wrong.group for wrong in reports[2]} == {"world", "tp", "dp"}


def test_a_dtype_that_the_backend_refuses_is_reported_and_does_not_change_the_schedule() -> None:
    shape = CellShape(2, 1, (2,), 1, 7)
    marks = run_phases(shape, "collectives", breaking="refused", rank=0)[0]
    told = events(marks)[0]
    assert told.wrong == ()
    assert set(told.unsupported) == {
        f"{op} bfloat16"
        for op in ("all_reduce", "reduce", "broadcast", "reduce_scatter", "all_gather", "all_to_all")
    }
    assert [mark[2:] for mark in marks.entered] == [
        (call.op, call.dtype, call.bytes) for call in collective_calls(shape, 0)
    ]


def test_a_slow_link_shows_in_its_pairs_only_and_its_pages_keep_moving() -> None:
    shape = CellShape(3, 1, (1, 1, 1), 1, 7)
    ranks = run_phases(shape, "bandwidth", breaking="slow", rank=1)
    best: dict[tuple[int, int, str], float] = defaultdict(float)
    for place, marks in enumerate(ranks):
        for pair in transfers(marks):
            way = place, pair.peer, pair.way
            best[way] = max(best[way], pair.bytes / pair.seconds)
    for (place, peer, _), rate in best.items():  # a busy machine may slow any single turn down
        assert (rate <= bandwidthplan.PIECE / 0.02) == (1 in (place, peer)), best
    calls = len(ranks[1].entered)
    assert ranks[1].marks > 2 * calls + 4 * (bandwidthplan.PINGS + 3)


@cases
def test_real_ranks_time_collectives_by_size(hosts: tuple[int, ...]) -> None:
    """The first member of each group tells, and all of them end together."""
    world, seconds = sum(hosts), 1.5
    shape = CellShape(world, 1, hosts, 1, 7, turns=1, sweep=seconds)
    ranks = run_phases(shape, "join", "bandwidth")
    for place, marks in enumerate(ranks):
        calls = {"join": join_calls(shape, place), "bandwidth": bandwidth_calls(shape, place)}
        assert marks.entered == [
            (entry.call.group, entry.seq, entry.call.op, entry.call.dtype, entry.call.bytes)
            for entry in numbered(calls)
        ]
        told = [event for event in events(marks) if isinstance(event, CollectiveTimes)]
        own = [
            scope
            for scope, group in scopes(shape).items()
            if len(members := shape.members(group, place)) > 1 and members[0] == place
        ]
        for scope in own:
            for op in TIMED:
                sizes = [each for each in told if (each.scope, each.op) == (scope, op)]
                assert [each.bytes for each in sizes] == list(SIZES[: len(sizes)])
                for each in sizes:
                    assert each.ranks == len(shape.members(scopes(shape)[scope], place))
                    assert LEAST <= each.calls <= MOST
                    assert 0 < each.seconds[0] <= each.seconds[1] <= each.seconds[2]
        assert {each.scope for each in told} == {*own}
        assert all({each.op for each in told if each.scope == scope} >= {"all_reduce"} for scope in own)


def test_no_size_is_begun_that_does_not_fit_in_memory() -> None:
    shape = CellShape(2, 1, (2,), 1, 7, turns=1, sweep=2.0)
    ranks = run_phases(shape, "join", "bandwidth", breaking="crowded", rank=1)
    told = [event for event in events(ranks[0]) if isinstance(event, CollectiveTimes)]
    assert {each.bytes for each in told} == {1024, 4096}
