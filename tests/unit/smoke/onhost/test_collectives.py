"""The collectives and bandwidth phases, on paper."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from doctor.smoke.onhost import bandwidthplan, collectiveplan
from doctor.smoke.onhost.bandwidthplan import Meeting, TransferPace, Way, bandwidth_calls, lots, rounds
from doctor.smoke.onhost.collectiveplan import (
    Trial,
    addends,
    collective_calls,
    neighbours,
    pattern,
    sent,
    total,
    trials,
)
from doctor.smoke.onhost.page import DTYPES, OPS
from doctor.smoke.onhost.shape import CellShape

# On paper.


@st.composite
def shapes(draw: st.DrawFn) -> CellShape:
    dp, tp = draw(st.integers(1, 20)), draw(st.sampled_from([1, 2, 4]))
    left, hosts = dp, []
    while left:
        hosts.append(draw(st.integers(1, left)))
        left -= hosts[-1]
    backend = draw(st.sampled_from(["gloo", "nccl", "hccl"]))
    pp = draw(st.sampled_from([size for size in range(1, dp + 1) if dp % size == 0]))
    cp = draw(st.sampled_from([size for size in range(1, dp // pp + 1) if dp // pp % size == 0]))
    ep = draw(st.sampled_from([size for size in range(1, dp // pp + 1) if dp // pp % size == 0]))
    ranks = tuple(ranks * tp for ranks in hosts)
    return CellShape(dp, tp, ranks, 30, 1, backend, pp=pp, cp=cp, ep=ep)


@pytest.mark.slow
@given(shapes())
def test_all_members_of_a_group_call_the_same(shape: CellShape) -> None:
    for group in shape.groups:
        formed = {tuple(shape.members(group, place)) for place in range(shape.world)}
        assert sorted(itertools.chain(*formed)) == list(range(shape.world)), "each rank is in one of them"
        for members in formed:
            plans = [[trial for trial in trials(shape, place) if trial.group == group] for place in members]
            assert all(plan == plans[0] for plan in plans)
            assert bool(plans[0]) == (len(members) > 1)
            calls = [
                [call for call in collective_calls(shape, place) if call.group == group] for place in members
            ]
            assert group == "ep" or all(these == calls[0] for these in calls)


def test_the_groups_are_those_of_megatron() -> None:
    """16 ranks as tp 2, cp 2, dp 2, pp 2; experts fill a stage."""
    shape = CellShape(8, 2, (8, 8), 30, 1, pp=2, cp=2, ep=4)
    assert shape.groups == ("world", "tp", "dp", "cp", "ep", "pp")
    of_5 = {group: shape.members(group, 5) for group in ("tp", "cp", "ep", "pp")}
    assert of_5 == {"tp": [4, 5], "cp": [5, 7], "ep": [1, 3, 5, 7], "pp": [5, 13]}


@given(shapes())
def test_nobody_waits_in_a_circle_at_the_edges_of_a_pipeline_or_a_ring(shape: CellShape) -> None:
    diaries = {place: neighbours(shape, place) for place in range(shape.world)}
    edges = sum(map(len, diaries.values())) / 2
    rings = shape.cp if shape.cp > 2 else shape.cp - 1
    assert edges == (shape.pp - 1) * shape.world / shape.pp + rings * shape.world / shape.cp
    while any(diaries.values()):
        ready = [place for place, diary in diaries.items() if diary and diaries[diary[0]][:1] == [place]]
        assert ready, "everybody waits for somebody else"
        for place in ready:
            diaries[place] = diaries[place][1:]


@given(shapes())
def test_what_a_member_sends_to_another_is_what_that_one_expects(shape: CellShape) -> None:
    for group in shape.groups:
        members = shape.members(group, 0)
        trial = Trial(group, ("all_to_all",), "float32", 8 * len(members))
        table = [sent(trial, members, place) for place in members]
        assert (table == [list(column) for column in zip(*table, strict=True)]) or group != "ep"
        assert group != "ep" or len(members) < 2 or len({*itertools.chain(*table)}) > 1, "uneven"


@pytest.mark.parametrize("backend", ["gloo", "nccl", "hccl"])
def test_every_call_can_be_shown_on_a_page(backend: str) -> None:
    calls = collective_calls(CellShape(3, 2, (6,), 1, 1, backend), 0)
    assert {call.op for call in calls} <= set(OPS)
    assert {call.dtype for call in calls} <= set(DTYPES)
    assert {"float32", "bfloat16", "int32", "float16", "int64", "int8"} <= {call.dtype for call in calls}
    assert {call.op for call in calls} == {*itertools.chain(*collectiveplan.RECIPES)}


@given(st.integers(2, 300), st.sampled_from(sorted(collectiveplan.BYTES)))
@example(300, "int8")
@example(23, "bfloat16")
@example(24, "bfloat16")
def test_sums_are_exact_in_their_dtype(members: int, dtype: str) -> None:
    ranks = list(range(members))
    sums = total(ranks, dtype)
    assert max(sums) <= {"bfloat16": 256, "float16": 2048, "int8": 127, "uint8": 255}.get(dtype, 2**24)
    payloads = addends(ranks, dtype)
    assert sums == [sum(payloads[rank][i] for rank in ranks) for i in range(collectiveplan.PERIOD)]
    assert min(min(payload) for payload in payloads.values()) >= 0
    if members <= 100:
        assert all(any(payload) for payload in payloads.values()), "a rank that adds nothing is not missed"


def test_payloads_are_the_documented_ones_and_differ_between_ranks() -> None:
    assert all(pattern(rank) == [(7 * i + 13 * rank) % 11 + 1 for i in range(22)] for rank in range(11))
    assert len({tuple(pattern(rank)) for rank in range(121)}) == 121
    assert total([0, 1], "float32") == [pattern(0)[i] + pattern(1)[i] for i in range(22)]


@given(st.integers(2, 40))
def test_in_a_tournament_all_pairs_meet_once_and_no_host_twice_at_a_time(hosts: int) -> None:
    plan = rounds(hosts)
    met = [pair for pairs in plan for pair in pairs]
    assert sorted(met) == sorted(itertools.combinations(range(hosts), 2))
    for pairs in plan:
        assert len({host for pair in pairs for host in pair}) == 2 * len(pairs) == hosts - hosts % 2


def seen_by_peer(meeting: Meeting, place: int) -> Meeting:
    ways: dict[Way, Way] = {"both": "both", "out": "in", "in": "out"}
    return meeting._replace(peer=place, way=ways[meeting.way])


@given(shapes())
def test_both_sides_agree_on_meetings_and_no_host_waits_for_ever(shape: CellShape) -> None:
    diaries = {place: [*itertools.chain.from_iterable(lots(shape, place))] for place in range(shape.world)}
    if len(shape.hosts) > 1:
        assert sum(bool(diary) for diary in diaries.values()) == len(shape.hosts)
    for place, diary in diaries.items():
        assert all(shape.host_of(meeting.peer) != shape.host_of(place) for meeting in diary)
    while any(diaries.values()):
        ready = [
            (place, diary[0].peer)
            for place, diary in diaries.items()
            if diary and diaries[diary[0].peer] and diaries[diary[0].peer][0] == seen_by_peer(diary[0], place)
        ]
        assert ready, "everybody waits for somebody else"
        for place, _ in ready:
            diaries[place] = diaries[place][1:]


def test_more_than_sixteen_hosts_do_not_take_longer() -> None:
    lengths = {
        hosts: len(bandwidth_calls(CellShape(hosts, 1, (1,) * hosts, 1, 1), 0)) for hosts in (16, 17, 40)
    }
    assert lengths[16] == 2 * 2 * 15 + 1
    assert max(lengths.values()) == lengths[16]


@given(st.lists(st.tuples(st.integers(-5, 10**7), st.integers(-5, 10**7)), max_size=600))
def test_both_ends_agree_on_the_pace_whatever_their_clocks_say(turns: list[tuple[int, int]]) -> None:
    here, there = TransferPace(), TransferPace()
    for mine, theirs in turns:
        if here.done:
            break
        here.turn(mine, theirs)
        there.turn(theirs, mine)
        assert (here.size, here.done, here.bytes) == (there.size, there.done, there.bytes)
        assert here.size % 8 == 0
        assert bandwidthplan.PIECE <= here.size <= bandwidthplan.LARGEST_PIECE


@pytest.mark.parametrize("speed", [1e4, 1e6, 1e8, 1e10, 1e12], ids=lambda speed: f"{speed:.0e} bytes/s")
def test_a_transfer_ends_and_measures_the_speed(speed: float) -> None:
    pace, before, whole = TransferPace(), 0, 0.0
    while not pace.done:
        took = pace.size / speed
        pace.turn(before, before)
        before = max(1, int(took * 1e6))
        whole += took
    assert pace.bytes / pace.seconds == pytest.approx(speed, rel=0.1)
    assert whole < max(0.3, 4.1 * bandwidthplan.PIECE / speed)
