"""Collectives by size: the factors of nccl-tests, and how far sizes grow in their time."""

from collections.abc import Callable

from hypothesis import given
from hypothesis import strategies as st

from doctor.smoke.onhost.bandwidthplan import bandwidth_calls
from doctor.smoke.onhost.shape import CellShape
from doctor.smoke.onhost.sweepplan import (
    LEAST,
    MOST,
    SIZES,
    WARM_UP,
    SweepPace,
    bus_share,
    scopes,
    size_text,
)
from tests.support.cases import cases


@cases
def test_bandwidth_as_the_tools_of_the_vendors_print_it(
    op: str, ranks: int, size: int, us: float, algorithm: float, bus: float | None
) -> None:
    """Lines that others printed: 10^9 bytes a second, to the digits that are there."""
    got = size / us / 1e3
    assert abs(got - algorithm) <= max(0.001 * algorithm, 0.005)
    if bus is not None:
        assert abs(got * bus_share(op, ranks) - bus) <= max(0.001 * bus, 0.005)


def swept(seconds: float, cost: Callable[[int], float]) -> tuple[list[tuple[int, int]], float]:
    """Each size with how often it counted, and all the time that it took."""
    pace, found, spent = SweepPace(seconds), list[tuple[int, int]](), 0.0
    while not pace.done:
        size, calls = pace.size, [cost(pace.size)] * (WARM_UP + pace.times)
        spent += sum(calls)
        if counted := pace.took(calls):
            found.append((size, len(counted)))
    return found, spent


@cases
def test_how_far_sizes_grow(seconds: float, latency: float, rate: float, largest: str) -> None:
    found, _ = swept(seconds, lambda size: latency + size / rate)
    assert size_text(found[-1][0]) == largest


@given(st.floats(0.01, 60), st.floats(1e-6, 30), st.floats(1e3, 1e12))
def test_no_size_is_begun_that_would_pass_the_budget(seconds: float, latency: float, rate: float) -> None:
    found, spent = swept(seconds, lambda size: latency + size / rate)
    assert [size for size, _ in found] == list(SIZES[: len(found)])
    assert all(LEAST <= count <= MOST for _, count in found)
    assert spent <= max(seconds, (2 * WARM_UP + 1 + LEAST) * (latency + SIZES[0] / rate)) * 1.001


@cases
def test_where_collectives_are_timed(hosts: tuple[int, ...], groups: list[str], members: list[int]) -> None:
    """`members`: how many ranks are in the groups of the last rank."""
    shape = CellShape(sum(hosts), 1, hosts, 1, 7, sweep=1.0)
    found = scopes(shape)
    assert [f"{scope} {group}" for scope, group in found.items()] == groups
    last = shape.world - 1
    assert [len(shape.members(group, last)) for group in found.values()] == members
    assert all(last in shape.members(group, last) for group in found.values())


def test_a_smoke_run_times_none() -> None:
    assert bandwidth_calls(CellShape(2, 1, (2,), 1, 7), 0) == []
    assert not any(call.op == "send_recv" for call in bandwidth_calls(CellShape(2, 1, (1, 1), 1, 7), 0))


def test_a_backend_times_what_it_has() -> None:
    calls = bandwidth_calls(CellShape(2, 1, (2,), 1, 7, "mccl", sweep=1.0), 0)
    assert [call.op for call in calls[:-1]] == ["all_reduce", "all_gather", "broadcast", "send_recv"]
