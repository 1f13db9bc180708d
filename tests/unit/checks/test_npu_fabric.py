"""Pings between NPUs: which pings are made, what they show, and which device is blamed."""

import contextlib
import shlex
from collections.abc import Mapping, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from checks.npu_fabric import device_unreachable
from doctor.api import Ask, Run, Undecided, UnreadableOutput
from doctor.exam.second_round import plan_ping_round
from doctor.facts.ascend.hccn_tool import PerDevice, SilentDevice
from doctor.facts.ascend.network import NPU_ADDRESSES, NPU_LINKS, Address
from doctor.facts.ascend.npus import NPUS
from doctor.facts.ascend.pings import NPU_PINGS, Ping, plan_pings
from doctor.job.plan import draft
from doctor.job.wishes import JobWishes
from doctor.judge.engine import Facts
from doctor.model import Capture, Host, MissingFact, Problem
from doctor.probe import HostAnswer
from tests.support.cases import cases, from_cases

Addresses = dict[str, PerDevice[Address | None]]


def cluster(hosts: int, devices: int = 2) -> Addresses:
    return {
        f"node{n}": {device: Address(f"10.20.{device}.{n}", 16) for device in range(devices)}
        for n in range(1, hosts + 1)
    }


def pinged(addresses: Addresses, lost: Mapping[tuple[str, int], str]) -> dict[str, tuple[Ping, ...]]:
    """The pings of all devices if some devices have a fault."""
    owner = {
        a.ip: (host, d) for host, said in addresses.items() for d, a in said.items() if isinstance(a, Address)
    }
    plan = plan_pings(addresses, {}, {})
    return {
        host: tuple(
            Ping(device, address, lost.get((host, device)) or lost.get(owner[address]) or "ok")  # type: ignore[arg-type]
            for device, address in pings
        )
        for host, pings in plan.items()
    }


def judged(pings: Mapping[str, Sequence[Ping]], addresses: Addresses, up: bool = True) -> list[Problem]:
    links = {host: dict.fromkeys(said, up) for host, said in addresses.items()}
    return list(device_unreachable.run(pings, addresses, links, {}))


def test_device_i_pings_device_i_in_both_directions() -> None:
    plan = plan_pings(cluster(2), {}, {})
    assert plan == {
        "node1": ((0, "10.20.0.2"), (1, "10.20.1.2")),
        "node2": ((0, "10.20.0.1"), (1, "10.20.1.1")),
    }


def test_devices_that_other_checks_report_are_not_pinged() -> None:
    addresses = cluster(3, 5)
    addresses["node1"] = {
        **addresses["node1"],
        0: None,
        1: SilentDevice("it hangs"),
        2: addresses["node2"][2],
    }
    links: dict[str, PerDevice[bool]] = {"node3": {3: False, 4: SilentDevice("it hangs")}}
    plan = plan_pings(addresses, links, {})
    seen = {(host, device) for host, pings in plan.items() for device, _ in pings}
    assert seen == {("node2", 0), ("node3", 0), ("node2", 1), ("node3", 1), ("node1", 3), ("node2", 3)} | {
        (host, 4) for host in addresses
    }
    assert "10.20.2.2" not in {address for pings in plan.values() for _, address in pings}


@cases
def test_with_many_hosts_each_pings_only_some(hosts: int, everybody: bool, each: int) -> None:
    plan = plan_pings(cluster(hosts, 1), {}, {}, everybody=everybody)
    assert {len(pings) for pings in plan.values()} == {each}


def test_a_healthy_fabric_has_no_findings() -> None:
    addresses = cluster(4)
    assert judged(pinged(addresses, {}), addresses) == []


def test_one_device_cut_off() -> None:
    addresses = cluster(3)
    [problem] = judged(pinged(addresses, {("node3", 1): "lost"}), addresses)
    assert problem.summary == "device 1 cannot be reached from any of node1, node2, although its link is UP"
    assert problem.hosts == ("node3",)
    assert [(place.host, place.device) for place in problem.where] == [("node3", 1)]
    assert problem.actual == "4 of 6 pings between devices of this number were lost"
    assert problem.evidence[0].source.endswith("-ping -g address 10.20.1.3")


def test_all_devices_of_a_host_are_one_problem() -> None:
    addresses = cluster(4, 3)
    ill = {("node2", device): "lost" for device in range(3)}
    [problem] = judged(pinged(addresses, ill), addresses, up=False)
    assert problem.summary == "devices 0-2 cannot be reached from any of node1, node3, node4"
    assert problem.hosts == ("node2",)
    assert [place.device for place in problem.where] == [0, 1, 2]


def test_a_rail_on_which_no_ping_succeeds_blames_no_host() -> None:
    addresses = cluster(4)
    [problem] = judged(pinged(addresses, {(f"node{n}", 0): "lost" for n in range(1, 5)}), addresses)
    assert problem.hosts == ()
    assert "the switch that joins them" in problem.summary
    assert {place.device for place in problem.where} == {0}


def test_two_hosts_are_undecided() -> None:
    addresses = cluster(2)
    [problem] = judged(pinged(addresses, {("node1", 1): "lost"}), addresses)
    assert problem.hosts == ("node1", "node2")
    assert [(place.host, place.peer) for place in problem.where] == [("node1", "node2"), ("node2", "node1")]
    assert problem.summary.startswith(
        "node[1-2] cannot reach each other's device 1, although the links are UP"
    )
    assert problem.summary.endswith("undecided which of them is at fault")
    [problem] = judged(pinged(addresses, {("node1", 1): "lost"}), addresses, up=False)
    assert "UP" not in problem.summary


def test_two_devices_on_two_hosts_are_two_problems() -> None:
    addresses = cluster(4)
    found = judged(pinged(addresses, {("node1", 0): "lost", ("node4", 1): "lost"}), addresses)
    assert [(p.hosts, [place.device for place in p.where]) for p in found] == [
        (("node1",), [0]),
        (("node4",), [1]),
    ]


def test_lost_packets_are_a_warning() -> None:
    addresses = cluster(3)
    [problem] = judged(pinged(addresses, {("node3", 0): "lossy"}), addresses)
    assert problem.severity == "warn"
    assert problem.hosts == ("node3",)
    assert "lose packets" in problem.summary


def test_pings_that_were_not_made_are_undecided() -> None:
    addresses = cluster(3)
    with pytest.raises(Undecided) as stop:
        judged(pinged(addresses, {("node3", 0): "untested"}), addresses)
    assert stop.value.hosts == ("node1", "node2", "node3")


PLAN = draft([Host(f"node{n}", f"node{n}") for n in (1, 2, 3)], JobWishes())
OUTPUT = from_cases(__file__, "OUTPUT", str)


def test_what_the_tool_prints() -> None:
    pings = NPU_PINGS.parse(Capture("npu-pings", 0, OUTPUT))
    assert [(ping.device, ping.address, ping.outcome) for ping in pings] == [
        (0, "10.0.0.2", "ok"),
        (1, "10.0.0.3", "lossy"),
        (2, "10.0.0.4", "lost"),
        (3, "10.0.0.5", "lost"),
        (4, "10.0.0.6", "untested"),
        (5, "10.0.0.7", "untested"),
        (6, "10.0.0.8", "untested"),
        (7, "10.0.0.9", "untested"),
    ]
    assert pings[5].detail == "not asked: the time for hccn_tool was used up"
    assert "not supported" in pings[6].detail


@given(st.text() | st.integers(0, len(OUTPUT)).map(lambda end: OUTPUT[:end]))
def test_any_output_is_parsed_or_refused(text: str) -> None:
    with contextlib.suppress(UnreadableOutput):
        assert NPU_PINGS.parse(Capture("npu-pings", 0, text)), "no ping proves nothing"


@pytest.mark.parametrize("address", ["10.0.0.1", "fd00::8", "a b", "$(id)", "'; id; '"])
def test_an_address_is_a_single_word_of_the_script(address: str) -> None:
    assert isinstance(NPU_PINGS.command, Run)
    script = NPU_PINGS.command.text(Ask("node1", pings=((3, address),)))
    assert shlex.split(script.rpartition("\np ")[2]) == ["3", address]


def test_an_address_with_a_scope_is_not_accepted() -> None:
    """The text after the % may be anything, and would be sent to other hosts."""
    said = "devices 0\nGet ipconf failed, because no ip was preset there!\n@ 0 13\n"
    said += "ipv6_address: fe80::1%;id >pwned; echo\nprefix_length: 64\n@ 0 0\n"
    (address,) = NPU_ADDRESSES.parse(Capture("npu-addresses", 0, said)).values()
    assert isinstance(address, SilentDevice)


def test_only_hosts_of_one_product_ping_each_other() -> None:
    products = {"node1": "atlas-a2", "node2": "atlas-a3", "node3": "atlas-a2"}
    plan = plan_pings(cluster(3, 1), {}, products)
    assert plan == {"node1": ((0, "10.20.0.3"),), "node3": ((0, "10.20.0.1"),)}


def heard(name: str, *, busy: bool = False, address: MissingFact | None = None) -> HostAnswer:
    """A host with one NPU, 10.0.0.N."""
    texts = {
        NPU_ADDRESSES.name: f"devices 0\nipaddr:10.0.0.{name[-1]}\nnetmask:255.0.0.0\n@ 0 0",
        NPU_LINKS.name: "devices 0\nlink status: UP\n@ 0 0",
        NPUS.name: f"{BUSY if busy else IDLE}@ info 0",
    }
    captures = {fact: Capture(fact, 0, text) for fact, text in texts.items()}
    missing = {NPU_ADDRESSES.name: address} if address else {}
    return HostAnswer(name, captures, missing, True, 0.0, 1.0)


IDLE = from_cases(__file__, "IDLE", str)
BUSY = (
    IDLE
    + "| 0       0                 | 4711          | python                   | 30000                   |\n"
)
IDLE += "| No running processes found in NPU 0                                                            |\n"


def test_the_second_round_skips_busy_hosts() -> None:
    facts = Facts({name: heard(name, busy=name == "node2") for name in ("node1", "node2", "node3")})
    found = plan_ping_round(facts, PLAN, everybody=False, also_busy=False)
    assert found.pings == {"node1": ((0, "10.0.0.3"),), "node3": ((0, "10.0.0.1"),)}
    assert "--on-busy run" in found.without["node2"].reason
    everyone = plan_ping_round(facts, PLAN, everybody=False, also_busy=True)
    assert set(everyone.pings) == {"node1", "node2", "node3"}
    assert not everyone.without


def test_the_second_round_explains_why_a_host_has_no_pings() -> None:
    root, none = (
        MissingFact("npu-addresses", "needs root"),
        MissingFact("npu-addresses", "there is no NPU", absent=True),
    )
    facts = Facts(
        {
            "node1": heard("node1", address=root),
            "node2": heard("node2", address=none),
            "node3": heard("node3"),
        }
    )
    without = plan_ping_round(facts, PLAN, everybody=False, also_busy=False).without
    assert without["node1"] == MissingFact("npu-pings", "needs root")
    assert without["node2"].absent
    assert "none of its NPUs" in without["node3"].reason
