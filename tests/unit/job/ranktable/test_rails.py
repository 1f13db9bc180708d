"""The rails of Atlas training servers, judged by the addresses of a table alone."""

from collections.abc import Callable, Mapping, Sequence
from ipaddress import ip_address

import pytest
from hypothesis import given
from hypothesis import strategies as st

from doctor.job.ranktable import Flaw, LiveDevice, LiveServer, judge, make_table, read_table
from doctor.job.ranktable.make import MakeForm
from doctor.model import Severity

FAIL, WARN = Severity.FAIL, Severity.WARN
Plan = Callable[[int, int], str]


def documented(server: int, device: int) -> str:
    """192.168.100.101, .101.101, .102.101, .103.101, 192.168.100.100, …"""
    return f"192.168.{100 + device % 4}.{99 + 2 * server + (device < 4)}"


def wide(server: int, device: int) -> str:
    """As in MindSpore's first tutorial: a netmask of 16 bits."""
    return f"192.{device % 4 + 1}.27.{2 * server + 6 + device // 4}"


def flat(server: int, device: int) -> str:
    return f"10.20.0.{10 * server + device + 1}"


def judged(
    plan: Plan,
    servers: int = 2,
    devices: Sequence[int] = range(8),
    product: str | None = "atlas-training",
    form: MakeForm = "1.0",
    changes: Mapping[tuple[int, int], str] | None = None,
) -> list[Flaw]:
    made = [
        LiveServer(
            f"node{s}",
            f"10.0.0.{s + 1}",
            tuple(LiveDevice(d, (changes or {}).get((s, d)) or plan(s, d), d, "0") for d in devices),
        )
        for s in range(servers)
    ]
    table, flaws = read_table(make_table(made, form))
    assert table is not None
    assert flaws == ()
    return list(judge(table, product))


@pytest.mark.parametrize("plan", [documented, wide])
@pytest.mark.parametrize("servers", [1, 2, 5])
def test_addresses_that_follow_the_rails(plan: Plan, servers: int) -> None:
    assert judged(plan, servers) == judged(plan, servers, range(4)) == judged(plan, servers, [0]) == []
    assert judged(plan, servers, form="legacy", product=None) == []


@given(
    prefix=st.integers(18, 28),
    base=st.integers(1, 200).filter(lambda base: base != 127),  # which never leaves a host
    servers=st.integers(1, 4),
    order=st.permutations(range(4)),
)
def test_any_netmask_will_do(prefix: int, base: int, servers: int, order: Sequence[int]) -> None:
    def planned(server: int, device: int) -> str:
        segment = (base << 24) + (order[device % 4] << (32 - prefix))
        return str(ip_address(segment + 2 * server + device // 4 + 1))

    assert judged(planned, servers) == []


@pytest.mark.parametrize("plan", [documented, wide])
@pytest.mark.parametrize(("product", "form"), [("atlas-training", "1.0"), (None, "legacy")])
def test_an_address_outside_its_rail_is_named(plan: Plan, product: str | None, form: MakeForm) -> None:
    (flaw,) = judged(plan, 3, product=product, form=form, changes={(1, 6): "10.9.9.9"})
    assert (flaw.rank, flaw.device, flaw.severity) == (14, 6, FAIL)
    assert (flaw.message, flaw.actual) == (
        "device_ip is outside the segment of its rail",
        "device 6: 10.9.9.9",
    )
    assert flaw.expected.startswith("devices 2/6 in one segment, as 192.")


def test_an_address_of_another_rail_is_outside_its_own() -> None:
    (flaw,) = judged(documented, 2, changes={(0, 3): "192.168.101.250"})
    assert (flaw.rank, flaw.device) == (3, 3)


def test_with_two_addresses_of_a_rail_nobody_says_which_is_right() -> None:
    (flaw,) = judged(documented, 1, changes={(0, 5): "192.168.222.9"})
    assert flaw.message == "a rail is in several segments"
    assert flaw.actual == "device 1: 192.168.101.100, device 5: 192.168.222.9"


def test_one_segment_for_all_is_a_warning_and_only_where_all_devices_take_part() -> None:
    (flaw,) = judged(flat)
    assert (flaw.message, flaw.severity) == ("devices of different rails have addresses of one segment", WARN)
    assert judged(flat, devices=range(4)) == judged(flat, devices=[0, 1]) == []
    assert judged(flat, form="legacy", product=None) == [], "it may be a table of a later product"


@pytest.mark.parametrize("product", [None, "atlas-a2", "atlas-a3"])
def test_other_products_have_no_rails(product: str | None) -> None:
    assert judged(flat, product=product) == []
    assert judged(documented, product=product, changes={(1, 6): "10.9.9.9"}) == []
