"""Slow ranks, shared processors and slow links: named with certainty, or not at all."""

import math
import random
from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from doctor.model import Confidence, Severity
from doctor.smoke.events import Alone, Segments, TrainStep, Transfer
from doctor.smoke.inject import KINDS
from doctor.smoke.judge.charge import SmokeCharge
from doctor.smoke.judge.links import judge_links, perhaps_slow_hosts, perhaps_slow_ways, too_noisy
from doctor.smoke.judge.speed import judge_speed, perhaps_slow
from doctor.smoke.result import SmokeResult
from tests.support.cases import cases, cases_with
from tests.support.each import each
from tests.support.smoke.results import changed, healthy, plan_of, with_host, with_rank, with_steps

STRAGGLER, SHARED, LINK = "smoke-straggler", "smoke-contention", "smoke-slow-link"


@cache
def run_of(hosts: int, each: int = 2, cells: int = 1) -> SmokeResult:
    return healthy(plan_of(hosts=hosts, each=each, tp=min(each, 2), cells=cells))


def computing(result: SmokeResult, rank: int, factor: float, first: int = 0, last: int = 99) -> SmokeResult:
    """Computing takes this many times as long, in CPU time and on the clock."""
    return with_steps(
        result, rank, lambda s: changed(s, cpu=s.cpu * factor, compute=s.compute * factor), first, last
    )


def waiting(result: SmokeResult, host: str, factor: float) -> SmokeResult:
    """Computing takes this many times as long on the clock only."""
    for seat in result.plan.on(host):
        result = with_steps(result, seat.rank, lambda s: changed(s, compute=s.cpu * factor))
    return result


Named = tuple[str, tuple[int, ...], tuple[str, ...]]


def named(charges: list[SmokeCharge]) -> list[Named]:
    return [(charge.check, charge.ranks, charge.hosts) for charge in charges]


# Ranks.


@cases
def test_a_slow_rank(factor: float, first: int, last: int, found: bool) -> None:
    charges = list(judge_speed(computing(run_of(4), 5, factor, first, last)))
    assert named(charges) == ([(STRAGGLER, (5,), ())] if found else [])
    assert all(charge.severity is Severity.WARN for charge in charges)


def test_a_run_that_breaks_off_names_no_slow_rank_beside_what_ended_it() -> None:
    whole = computing(run_of(4), 5, 1.27, 0, 99)
    result = whole
    for seen in whole.ranks:
        result = with_rank(result, seen.rank, steps=[step for step in seen.steps if step.step < 18])
    assert named(list(judge_speed(whole))) == [(STRAGGLER, (5,), ())]
    assert list(judge_speed(result)) == []


@cases
def test_a_slow_rank_shows_from_as_many_ranks_and_steps_on_as_its_injection_takes(
    fewer_ranks: int, fewer_steps: int, found: bool
) -> None:
    kind = KINDS["slow"]
    steps = kind.steps - fewer_steps
    first = kind.first_step(steps)
    assert first is not None
    result = healthy(plan_of(kind.ranks - fewer_ranks, steps=steps))
    charges = list(judge_speed(computing(result, 2, 1.5, first=first)))
    assert named(charges) == ([(STRAGGLER, (2,), ())] if found else [])


@pytest.mark.parametrize(("factor", "found"), [(1.25, []), (1.4, [(STRAGGLER, (5,), ())])])
def test_a_slow_rank_among_ranks_that_wait_for_their_processors(factor: float, found: list[Any]) -> None:
    result = computing(run_of(4), 5, factor)
    for host in result.plan.hosts:
        result = waiting(result, host, 1.2)
    assert named(list(judge_speed(result))) == found
    assert perhaps_slow(result) == ([] if found else [5])


def queueing(result: SmokeResult, share: float) -> SmokeResult:
    """All ranks wait for a processor for this share of their time, as if others used it, too."""
    for seen in result.ranks:
        result = with_steps(
            result, seen.rank, lambda step: changed(step, queued=step.cpu * share / (1 - share))
        )
    return result


@cases
def test_a_slow_rank_that_waits_for_a_processor_that_others_use(
    share: float, factor: float, found: bool
) -> None:
    result = computing(computing(queueing(run_of(4), share), 4, factor), 5, factor)
    assert named(list(judge_speed(result))) == ([(STRAGGLER, (4, 5), ())] if found else [])
    assert perhaps_slow(result) == ([] if found else [4, 5])


def beside_hogs(seed: int, *, slow: int | None = None) -> SmokeResult:
    """Ranks and steps that vary as on a machine with ten processes for each processor."""
    chance = random.Random(seed)
    result = run_of(4)
    for rank in range(8):
        own = math.exp(chance.gauss(0, 0.07)) * (2.0 if rank == slow else 1.0)

        def uneven(step: TrainStep, own: float = own) -> TrainStep:
            return msgspec.structs.replace(step, cpu=step.cpu * own * math.exp(chance.gauss(0, 0.17)))

        result = with_steps(result, rank, uneven)
    return result


def test_nobody_is_named_because_the_machine_is_busy() -> None:
    accused = {seed: found for seed in range(300) if (found := named(list(judge_speed(beside_hogs(seed)))))}
    assert len(accused) <= 1, accused


def test_a_rank_that_takes_twice_as_long_is_named_on_a_busy_machine_too() -> None:
    runs = [named(list(judge_speed(beside_hogs(seed, slow=5)))) for seed in range(100)]
    assert runs.count([(STRAGGLER, (5,), ())]) >= 98


def test_slow_ranks_of_a_host_are_one_charge() -> None:
    charges = list(judge_speed(computing(computing(run_of(4), 4, 1.4), 5, 1.5)))
    assert named(charges) == [(STRAGGLER, (4, 5), ())]
    assert charges[0].confidence is Confidence.STRONG


def test_only_devices_of_one_kind_are_compared() -> None:
    result = run_of(4)
    for rank in (4, 5):
        result = with_rank(
            computing(result, rank, 2.0), rank, started=changed(result.ranks[rank].started, product="older")
        )
    assert not list(judge_speed(result))


# Processors.


@cases
def test_a_shared_processor(factors: dict[str, float], found: list[str]) -> None:
    result = run_of(5) if len(factors) < 4 else run_of(4)
    for host, factor in factors.items():
        result = waiting(result, host, factor)
    charges = list(judge_speed(result))
    assert named(charges) == [(SHARED, (), (host,)) for host in found]
    assert all(charge.severity is Severity.WARN for charge in charges)


@cases
def test_a_processor_that_was_shared_for_a_while_or_by_one_rank(
    ranks: tuple[int, ...], first: int, last: int
) -> None:
    result = run_of(4)
    for rank in ranks:
        result = with_steps(result, rank, lambda s: changed(s, compute=s.cpu * 3), first, last)
    assert not list(judge_speed(result))


def alone(result: SmokeResult, factors: Mapping[str, float]) -> SmokeResult:
    """Before and after the links, computing alone took this many times its processor time on each host."""
    for seat in result.plan.seats:
        told = Alone("matmul", (1e11,), stretch=factors.get(seat.host, 1.0))
        result = with_rank(result, seat.rank, alone=(told, told))
    return result


def test_a_processor_is_shared_before_and_after_the_training_too() -> None:
    result = waiting(run_of(4), "n2", 3.0)
    crowd = dict.fromkeys(result.plan.hosts, 3.0)
    assert named(list(judge_speed(alone(result, {"n2": 3.0})))) == [(SHARED, (), ("n2",))]
    assert not list(judge_speed(alone(result, {})))
    assert not list(judge_speed(alone(result, crowd)))


def test_two_hosts_are_too_few() -> None:
    assert not list(judge_speed(waiting(run_of(2), "n2", 3.0)))


def test_the_summary_names_the_load_of_the_host() -> None:
    result = with_host(waiting(run_of(4), "n2", 3.0), "n2", load=97.0)
    (charge,) = judge_speed(result)
    assert "load 97.0 on 64 cores" in charge.actual


def test_a_shared_processor_explains_slow_ranks() -> None:
    result = computing(computing(run_of(4), 2, 1.3), 3, 1.3)
    assert named(list(judge_speed(waiting(result, "n2", 3.0)))) == [(SHARED, (), ("n2",))]


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32), st.sampled_from([0.01, 0.05, 0.15, 0.4]), st.sampled_from([1.0, 2.5]))
def test_noise_is_not_a_fault(seed: int, noise: float, crowd: float) -> None:
    """Even if other processes take most of the time of all processors."""
    chance = random.Random(seed)

    def change(step: TrainStep) -> TrainStep:
        cpu = 0.01 * math.exp(chance.gauss(0, noise))
        waited = cpu * (crowd - 1) * chance.expovariate(1)
        return TrainStep(step.step, step.loss, True, step.params, cpu=cpu, compute=cpu + waited)

    result = run_of(4)
    for seen in result.ranks:
        result = with_steps(result, seen.rank, change)
    assert not list(judge_speed(result))


def kept(result: SmokeResult, host: str, times: float, queued: float = 0.01, last: int = 99) -> SmokeResult:
    """Computing takes this many times its processor time, beside the waits for a processor."""
    for seat in result.plan.on(host):
        result = with_steps(
            result,
            seat.rank,
            lambda s: changed(s, compute=s.cpu * (times + queued), queued=s.cpu * queued),
            last=last,
        )
    return result


@pytest.mark.parametrize("hosts", [1, 2, 4])
@cases
def test_a_host_that_stops_its_processes(times: float, severity: Severity | None, hosts: int) -> None:
    charges = list(judge_speed(kept(run_of(hosts), "n1", times)))
    assert named(charges) == ([(SHARED, (), ("n1",))] if severity else [])
    assert [charge.severity for charge in charges] == ([severity] if severity else [])


def test_all_hosts_may_stop_their_processes() -> None:
    charges = list(judge_speed(kept(kept(run_of(2), "n1", 3.0), "n2", 3.0)))
    assert named(charges) == [(SHARED, (), ("n1",)), (SHARED, (), ("n2",))]


def test_what_other_work_or_a_single_pause_explains_stops_nobody() -> None:
    busy = run_of(2)
    for host in busy.plan.hosts:
        busy = kept(busy, host, 1.0, queued=4.0)
    assert list(judge_speed(busy)) == []
    assert list(judge_speed(kept(run_of(2), "n1", 9.0, last=19))) == [], "only in the first half"
    assert list(judge_speed(kept(run_of(2), "n1", 9.0, queued=0.0))) == [], "the kernel counts no waits"
    one = run_of(2)
    other = one.ranks[0]
    mixed = with_rank(kept(one, "n1", 9.0), 0, steps=other.steps)
    assert list(judge_speed(mixed)) == [], "one of its ranks runs"


# Links.

Rates = Callable[[str, str, int], float]
"""By pair of hosts and stage: the share of the usual rate."""


def carrying(result: SmokeResult, rates: Rates, trips: Rates = lambda *_: 1.0) -> SmokeResult:
    plan = result.plan
    for seen in result.ranks:
        here, pairs = plan.seat(seen.rank), []
        for pair in seen.pairs:
            one, other = sorted((here.host, plan.seat(plan.cells[here.cell][pair.peer]).host))
            size = int(pair.bytes * rates(one, other, pair.stage))
            pairs.append(changed(pair, bytes=size, rtt=pair.rtt * trips(one, other, pair.stage)))
        result = with_rank(result, seen.rank, pairs=tuple(pairs))
    return result


def at(*hosts: str, factor: float, stages: Container[int] = range(1, 9)) -> Rates:
    return lambda a, b, stage: factor if stage in stages and (a in hosts or b in hosts) else 1.0


def between(one: str, other: str, factor: float, stages: Container[int] = range(1, 9)) -> Rates:
    return lambda a, b, stage: factor if stage in stages and {a, b} == {one, other} else 1.0


def everywhere(factor: float) -> Rates:
    return lambda *_: factor


def growing(host: str, factor: float) -> Rates:
    """More at every stage."""
    return lambda a, b, stage: factor * stage if host in (a, b) else 1.0


def first_of(*all_rates: Rates) -> Rates:
    """The first that is not the usual one."""
    return lambda *way: next((rate for rates in all_rates if (rate := rates(*way)) != 1.0), 1.0)


@cases_with(at, between, everywhere)
def test_a_slow_link(hosts: int, rates: Rates, found: list[tuple[str, ...]]) -> None:
    charges = list(judge_links(carrying(run_of(hosts), rates)))
    assert named(charges) == [(LINK, (), each) for each in found]
    for charge in charges:
        assert charge.severity is Severity.WARN
        assert charge.undecided == (len(charge.hosts) == 2)
        assert "bit/s" in charge.actual
        assert any("ethtool -S" in command for command in charge.commands)


def sending(result: SmokeResult, turns: Mapping[tuple[str, str], Sequence[float]]) -> SmokeResult:
    """By sender and receiver: the share of the usual rate at each turn."""
    plan = result.plan
    for seen in result.ranks:
        here, pairs = plan.seat(seen.rank), []
        for pair in seen.pairs:
            there = plan.seat(plan.cells[here.cell][pair.peer]).host
            way = (here.host, there) if pair.way == "out" else (there, here.host)
            part = turns[way][pair.stage - 1] if way in turns else 1.0
            pairs.append(changed(pair, bytes=int(pair.bytes * part)))
        result = with_rank(result, seen.rank, pairs=tuple(pairs))
    return result


def steadily(factor: float) -> list[float]:
    return [factor * noise for noise in (1.0, 1.08, 0.97, 1.02, 1.05)]


def ways(turns: Mapping[str, Sequence[float]]) -> dict[tuple[str, str], Sequence[float]]:
    return {(way.split()[0], way.split()[1]): each for way, each in turns.items()}


TO_N2 = ("n1", "n2")


@cases_with(steadily)
def test_a_slow_direction(
    hosts: int,
    turns: dict[str, list[float]],
    found: list[tuple[str, ...]],
    doubtful: list[tuple[str, str]],
) -> None:
    result = sending(run_of(hosts), ways(turns))
    charges = list(judge_links(result))
    assert named(charges) == [(LINK, (), each) for each in found]
    assert perhaps_slow_ways(result) == doubtful
    for charge in charges:
        assert charge.undecided == (len(charge.hosts) == 2)
        assert not charge.undecided or "the other way" in charge.summary


@cases_with(steadily)
def test_a_direction_below_a_tenth_of_the_other_is_a_fault(
    hosts: int, turns: dict[str, list[float]], severity: Severity
) -> None:
    charges = list(judge_links(sending(run_of(hosts), ways(turns))))
    assert {charge.severity for charge in charges} == {severity}


@cases_with(at, growing, between)
def test_a_link_below_a_tenth_of_the_others_is_a_fault(hosts: int, rates: Rates, severity: Severity) -> None:
    charges = list(judge_links(carrying(run_of(hosts), rates)))
    assert {charge.severity for charge in charges} == {severity}


@pytest.mark.parametrize("factor", [0.2, 0.3])
def test_one_host_of_three_is_slow_from_a_quarter_on(factor: float) -> None:
    """Whatever its turns are like: the pair without it is the measure."""
    chance = random.Random(4)
    host = at("n3", factor=factor)
    uneven = carrying(run_of(3), lambda a, b, stage: host(a, b, stage) * math.exp(chance.uniform(-0.05, 0.5)))
    (charge,) = judge_links(uneven) if factor < 0.25 else [None]
    assert charge is None or (charge.hosts, charge.confidence) == (("n3",), Confidence.STRONG)
    if charge is None:
        assert not list(judge_links(uneven))


@pytest.mark.parametrize("hosts", [2, 3])
def test_few_hosts_on_a_busy_machine_are_not_slow(hosts: int) -> None:
    """Each turn takes as long as its processes have to wait: a standard deviation of 76 %, as beside busy
    programs.
    """
    chance = random.Random(6)
    ways = [(a, b) for a in ("n1", "n2", "n3") for b in ("n1", "n2", "n3") if a != b]
    wrong = 0
    for _ in range(60):
        turns = {way: [math.exp(chance.gauss(0, 0.76)) for _ in range(5)] for way in ways}
        wrong += bool(list(judge_links(sending(run_of(hosts), turns))))
    assert wrong <= 1


def test_a_slow_direction_comes_with_what_was_sent_again() -> None:
    result = sending(run_of(2), {TO_N2: steadily(0.03)})
    result = with_rank(result, 0, segments=Segments({"10.0.0.2": (9000, 180), "192.0.2.9": (5, 5)}))
    (charge,) = judge_links(result)
    assert charge.evidence[1].text == "n1 -> n2: 180 of 9,000 (2.0%)"
    assert charge.evidence[0].text.splitlines()[0].startswith("n1 -> n2: 288.0 Mbit/s, 311.0 Mbit/s")


@cases_with(at, first_of, between, everywhere)
def test_long_round_trips(hosts: int, trips: Rates, found: list[str]) -> None:
    charges = list(judge_links(carrying(run_of(hosts), lambda *_: 1.0, trips)))
    assert named(charges) == [(LINK, (), (each,)) for each in found]
    assert all("round trips" in charge.summary for charge in charges)


@pytest.mark.parametrize(("factor", "found"), [(150, []), (250, [(LINK, (), ("n3",))])])
def test_long_round_trips_where_ranks_wait_for_their_processors(factor: float, found: list[Any]) -> None:
    result = carrying(run_of(4), lambda *_: 1.0, at("n3", factor=factor))
    for host in result.plan.hosts:
        result = waiting(result, host, 1.2)
    assert named(list(judge_links(result))) == found


def test_the_summary_names_the_slowdown_of_a_link() -> None:
    result = carrying(run_of(4), at("n2", factor=0.25), at("n2", factor=300))
    (charge,) = judge_links(result)
    assert charge.confidence is Confidence.STRONG
    assert charge.summary == (
        "its network carries 2.40 Gbit/s, 25% of what pairs of the other hosts do; "
        "round trips to it take 30.00 ms, and 0.10 ms between the others"
    )
    assert charge.evidence[0].text.count("n2") == 3
    assert "10.0.0.2" in charge.commands[0]


def test_each_cell_has_a_network_of_its_own() -> None:
    result = carrying(run_of(8, 2, 2), at("n6", factor=0.3))
    assert named(list(judge_links(result))) == [(LINK, (), ("n6",))]


@pytest.mark.parametrize("end", [0, 1])
def test_the_slower_measurement_of_two_ends_counts(end: int) -> None:
    """Either of the two ends may have measured it."""
    result = run_of(4, 1)
    for rank in range(4):
        pairs = tuple(
            changed(pair, seconds=pair.seconds * 3) if 2 in (rank, pair.peer) and (rank == 2) == end else pair
            for pair in result.ranks[rank].pairs
        )
        result = with_rank(result, rank, pairs=pairs)
    assert named(list(judge_links(result))) == [(LINK, (), ("n3",))]


@pytest.mark.parametrize(("slow", "found"), [(20, [(STRAGGLER, (2,), ())]), (14, [])])
def test_a_rank_that_is_slow_now_and_then_is_not_a_straggler(slow: int, found: list[Any]) -> None:
    """Its median is slow in both cases; 80 % of the 20 steps that count must be slow."""
    result = computing(run_of(4), 2, 1.5, first=30 - slow)
    assert named(list(judge_speed(result))) == found


@pytest.mark.parametrize(("apart", "found"), [(0.01, [(STRAGGLER, (2,), ())]), (0.15, [])])
def test_ranks_that_differ_among_themselves_hide_a_straggler(apart: float, found: list[Any]) -> None:
    result = computing(run_of(4), 2, 1.5)
    for number, rank in enumerate((0, 1, 3, 4, 5, 6, 7)):
        result = computing(result, rank, 1 + apart * (number - 3))
    assert named(list(judge_speed(result))) == found


@pytest.mark.parametrize(("noise", "found"), [(0.03, [(LINK, (), ("n1", "n2"))]), (0.2, [])])
def test_a_slow_pair_is_named_in_a_steady_network_only(noise: float, found: list[Any]) -> None:
    chance = random.Random(5)
    pair = between("n1", "n2", 0.15)
    result = carrying(run_of(6), lambda a, b, stage: pair(a, b, stage) * math.exp(chance.gauss(0, noise)))
    assert named(list(judge_links(result))) == found


@pytest.mark.parametrize("hosts", [3, 4, 5, 6])
@each("seed", range(30))
def test_a_run_that_broke_off_between_meetings_names_no_rank(hosts: int, seed: int) -> None:
    """However far each rank got, and whatever was slow until then."""
    chance = random.Random(seed)
    result = carrying(run_of(hosts), lambda a, b, _: 0.2 if "n2" in (a, b) or (a, b) == ("n1", "n3") else 1.0)
    whole = [seen.pairs for seen in result.ranks]
    for rank, pairs in enumerate(whole[::2]):
        result = with_rank(result, 2 * rank, pairs=pairs[: chance.randrange(len(pairs))])
    assert not list(judge_links(result))


@pytest.mark.parametrize(("noise", "blind"), [(0.0, False), (0.1, False), (1.0, True)])
def test_a_network_that_is_too_noisy_to_compare_is_recognised(noise: float, blind: bool) -> None:
    chance = random.Random(3)
    result = carrying(run_of(6), lambda *_: math.exp(chance.gauss(0, noise)))
    assert too_noisy(result) == blind
    assert not list(judge_links(result))
    assert not too_noisy(run_of(2))


@pytest.mark.parametrize("seed", range(10))
@cases
def test_a_slow_host_in_a_noisy_network(
    hosts: int, factor: float, found: list[Named], perhaps: list[str], seed: int
) -> None:
    chance = random.Random(seed)
    host = at("n3", factor=factor)
    uneven = carrying(
        run_of(hosts), lambda a, b, stage: host(a, b, stage) * math.exp(chance.uniform(-0.6, 0.6))
    )
    assert named(list(judge_links(uneven))) == found
    if factor < 1:
        assert perhaps_slow_hosts(uneven) == perhaps


def held_up(result: SmokeResult, rank: int, share: float) -> SmokeResult:
    """Others had the processor of this rank for such a share of each of its transfers."""
    pairs = [changed(pair, queued=pair.seconds * share) for pair in result.ranks[rank].pairs]
    return with_rank(result, rank, pairs=tuple(pairs))


@pytest.mark.parametrize("hosts", [3, 4])
@cases
def test_a_rank_that_waits_for_a_processor_has_no_slow_link(
    hosts: int, waits: dict[int, float], found: list[Named]
) -> None:
    """What the others carried counts as it was measured: a wait of theirs makes nobody slow."""
    result = carrying(run_of(hosts, 1), at("n3", factor=0.1))
    for rank, share in waits.items():
        result = held_up(result, rank, share) if rank < hosts else result
    assert named(list(judge_links(result))) == found
    unmoved = run_of(hosts, 1)
    for rank in {*range(hosts)} - {2}:
        unmoved = held_up(unmoved, rank, 0.9)
    assert not list(judge_links(unmoved))


@pytest.mark.parametrize(("share", "found"), [(0.0, [("n1", "n2")]), (0.9, [])])
def test_a_direction_is_not_slow_because_its_sender_waits_for_a_processor(
    share: float, found: list[Any]
) -> None:
    result = held_up(sending(run_of(2, 1), {TO_N2: steadily(0.1)}), 0, share)
    assert [charge.hosts for charge in judge_links(result)] == found


@cases
def test_a_slow_direction_is_limited_alike_while_its_sender_waits_for_a_processor(
    turns: list[int], waits: list[float], found: list[Severity]
) -> None:
    """Mbit/s between two hosts of which one sends at 60 Mbit/s at most, beside busy programs; the last ones
    without such a limit. The other direction carries 9.6 Gbit/s.
    """
    result = sending(run_of(2, 1), {TO_N2: [each / 9600 for each in turns]})
    pairs = (changed(each, queued=waits[each.stage - 1] * each.seconds) for each in result.ranks[0].pairs)
    charges = list(judge_links(with_rank(result, 0, pairs=tuple(pairs))))
    assert [charge.severity for charge in charges] == found


def test_of_the_turns_of_a_slow_direction_those_without_a_wait_are_enough() -> None:
    result = sending(run_of(2, 1), {TO_N2: steadily(0.1)})
    pairs = result.ranks[0].pairs
    waited = [changed(each, queued=0.9 * each.seconds * (each.stage < 3)) for each in pairs]
    (charge,) = judge_links(with_rank(result, 0, pairs=tuple(waited)))
    assert charge.hosts == ("n1", "n2")


def uneven(result: SmokeResult, noise: float) -> SmokeResult:
    """Every step of every rank takes a different time."""
    chance = random.Random(7)

    def change(step: TrainStep) -> TrainStep:
        factor = math.exp(chance.gauss(0, noise))
        return msgspec.structs.replace(step, cpu=step.cpu * factor, compute=step.compute * factor)

    for seen in result.ranks:
        result = with_steps(result, seen.rank, change)
    return result


def test_a_slow_rank_is_named_among_uneven_steps_or_not_called_healthy() -> None:
    slow = computing(run_of(4), 5, 1.5)
    assert named(list(judge_speed(uneven(slow, 0.15)))) == [(STRAGGLER, (5,), ())]
    assert perhaps_slow(uneven(slow, 0.15)) == []
    assert not list(judge_speed(uneven(slow, 0.6)))
    assert 5 in perhaps_slow(uneven(slow, 0.6))
    assert perhaps_slow(uneven(run_of(4), 0.05)) == []


def test_nonsense_is_left_out() -> None:
    result = run_of(4, 1)
    odd = (
        Transfer(99, 1, 1, 1.0, 1.0),
        Transfer(1, 1, 0, 1.0, 1.0),
        Transfer(1, 1, 1, 0.0, 1.0),
        Transfer(0, 1, 1, 1e6, 1.0),
    )
    result = with_rank(result, 0, pairs=(*result.ranks[0].pairs, *odd))
    assert not list(judge_links(result))
    assert not list(
        judge_links(replace(result, ranks=tuple(replace(seen, pairs=odd) for seen in result.ranks)))
    )


@settings(max_examples=80, deadline=None)
@given(st.integers(0, 2**32), st.sampled_from([4, 6, 8]), st.sampled_from([0.01, 0.04, 0.08]))
def test_noisy_networks_are_not_charged(seed: int, hosts: int, noise: float) -> None:
    chance = random.Random(seed)
    result = carrying(
        run_of(hosts), lambda *_: math.exp(chance.gauss(0, noise)), lambda *_: math.exp(chance.gauss(0, 0.8))
    )
    assert not list(judge_links(result))
