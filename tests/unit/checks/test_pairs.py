"""Who makes links slow: sound hosts are not named at any noise, and each culprit is, with nobody else."""

import math
import random
from itertools import chain

import pytest

from checks.accept import AGAIN, SlowLinks, slow_links
from doctor.smoke.judge.one_way import OneWayRates
from doctor.smoke.onhost.bandwidthplan import MOST_WITH_ALL, bandwidth_calls, lots, pairs_apart
from doctor.smoke.onhost.shape import CellShape
from tests.support.accept_runs import shares
from tests.support.cases import cases

Turns = dict[tuple[str, str], list[float]]


def measured(hosts: int, noise: float, seed: int, slow: dict[str, float] | None = None) -> Turns:
    """Three of a hundred turns are stalled."""
    rng, share = random.Random(seed), shares(slow or {})
    names = [f"node{n}" for n in range(1, hosts + 1)]

    def turn(way: tuple[str, str]) -> float:
        stalled = rng.uniform(0.3, 0.9) if rng.random() < 0.03 else 1.0
        return 1e9 * share(*way) * stalled * math.exp(rng.gauss(0, noise))

    ways = [(a, b) for a in names for b in names if a != b]
    return {way: [turn(way) for _ in range(7 if hosts < 8 else 4)] for way in ways}


def judged(turns: Turns, at_best: Turns | None = None) -> SlowLinks | None:
    return slow_links(OneWayRates(turns, at_best or turns))


def named(found: SlowLinks | None) -> set[str]:
    assert found is not None
    sides = {",".join(found.sides[0])} if found.sides else set()
    ends = {(True, True): "{}", (True, False): "{}>", (False, True): ">{}"}
    return (
        sides
        | {ends[own].format(host) for host, own in found.hosts.items()}
        | {">".join(w) for w in found.ways}
    )


@pytest.mark.parametrize("noise", [0.0, 0.01, 0.1, 0.25, 0.4, 0.8])
@pytest.mark.parametrize("hosts", [4, 5, 8, 12])
def test_sound_hosts_are_not_named(hosts: int, noise: float) -> None:
    for seed in range(25):
        found = judged(measured(hosts, noise, seed))
        assert (named(found), found and found.quick) == (set(), ())


@cases
def test_a_culprit_is_named_and_nobody_else(hosts: int, slow: dict[str, float], wanted: set[str]) -> None:
    for seed in range(10):
        assert named(judged(measured(hosts, 0.02, seed, slow))) == wanted


def test_if_half_of_the_hosts_are_slow_nobody_is_named() -> None:
    found = judged(measured(6, 0.3, 1, {"node1": 0.001, "node2": 0.002, "node3": 0.0004}))
    assert found is not None
    assert not found.hosts


def test_who_was_slow_only_once_is_not_named() -> None:
    turns = measured(4, 0.01, 1, {"node2": 0.1})
    recovered = {way: own[:-AGAIN] + [1e9] * AGAIN for way, own in turns.items()}
    assert named(judged(recovered)) == set()
    assert named(judged(turns)) == {"node2"}


def test_who_waited_for_a_processor_is_not_named() -> None:
    turns = measured(4, 0.01, 1, {"node2": 0.1})
    assert named(judged(turns, measured(4, 0.01, 2))) == set()


def test_too_few_hosts_or_turns_are_not_judged() -> None:
    assert judged(measured(3, 0.01, 1)) is None
    assert judged({way: own[:AGAIN] for way, own in measured(4, 0.01, 1).items()}) is None


@pytest.mark.parametrize("hosts", [2, 3, 5, 8, MOST_WITH_ALL, 65, 100, 144])
def test_nobody_is_in_two_pairs_of_a_round(hosts: int) -> None:
    shape = CellShape(hosts, 1, (1,) * hosts, 30, 20, turns=2)
    met: dict[tuple[int, int], list[int]] = {}
    for place in range(hosts):
        for meeting in chain.from_iterable(lots(shape, place)):
            assert meeting.way != "both"
            met.setdefault((meeting.stage, meeting.round), []).append(place)
    for places in met.values():
        assert len({*places}) * 2 == len(places)  # each sends once and receives once
    pairs = {frozenset((p, m.peer)) for p in range(hosts) for m in chain.from_iterable(lots(shape, p))}
    assert len(pairs) == hosts * (hosts - 1) // 2 - pairs_apart(hosts)  # nobody meets twice in a stage
    if hosts <= MOST_WITH_ALL:
        assert pairs_apart(hosts) == 0
    else:
        assert len(met) <= 2 * 2 * math.ceil(math.log2(hosts))
        assert {place for pair in pairs for place in pair} == {*range(hosts)}


@pytest.mark.parametrize("at_once", [1, 2, 5])
@pytest.mark.parametrize("hosts", [4, 7, 16, 65])
def test_no_more_pairs_send_at_once_than_allowed(hosts: int, at_once: int) -> None:
    """What was met in rounds is met all the same, in the same rounds; and nobody enters a lot too early."""
    whole = CellShape(hosts, 1, (1,) * hosts, 30, 20, turns=2)
    bound = whole._replace(pairs_at_once=at_once)
    own = {place: lots(bound, place) for place in range(hosts)}
    assert {place: [*chain.from_iterable(own[place])] for place in own} == {
        place: [*chain.from_iterable(lots(whole, place))] for place in own
    }
    for lot in zip(*own.values(), strict=True):
        busy = {place for place, meetings in enumerate(lot) if meetings}
        assert {meeting.peer for meetings in lot for meeting in meetings} == busy
        assert len(busy) <= 2 * at_once
    waits = [call.op for call in bandwidth_calls(bound, 0)].count("all_reduce")
    assert waits == len(own[0]) + 1
    assert [call.op for call in bandwidth_calls(whole, 0)].count("all_reduce") == 1


def test_a_second_rank_of_a_host_only_waits() -> None:
    shape = CellShape(4, 2, (2,) * 4, 30, 20, turns=2, pairs_at_once=1)
    first, second = bandwidth_calls(shape, 0), bandwidth_calls(shape, 1)
    assert [call for call in first if call.op == "all_reduce"] == second
    assert len(second) == 2 * 3 * 2 + 1
