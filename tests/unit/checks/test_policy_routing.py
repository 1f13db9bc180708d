"""Rules of policy routing, MAC addresses and the loopback interface: facts in, findings out."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from doctor.facts.routing import POLICY
from doctor.mesh import MeshResult
from doctor.model import Finding, Host, Status
from tests.support.captures import printed
from tests.support.cases import cases, cases_with, from_cases
from tests.support.recordings import heard, mesh, recording, report

NAMES = ["a", "b"]
BOTH = (("a", "b"), ("b", "a"))
KERNEL = from_cases(__file__, "KERNEL", str)
MAIN = "default via 10.0.0.1 dev eth0\n10.0.0.0/24 dev eth0 proto kernel scope link src 10.0.0.1\n"
LOCAL = "local 10.0.0.1 dev eth0 table local proto kernel scope host src 10.0.0.1\n"
TWO_CARDS = "1: lo inet 127.0.0.1/8 scope\n2: eth0 inet 10.0.0.1/24 scope\n3: mgmt0 inet 10.9.9.1/24 scope"


def policy(rules: str, routes: str = "") -> str:
    return KERNEL.format(rules, MAIN + LOCAL + routes)


def examined(
    seen: MeshResult | None, own: Mapping[str, Any], others: Mapping[str, Any] | None = None
) -> dict[str, Finding]:
    """The findings if `a` and `b` give these answers."""
    answers = {"a": heard(1, NAMES, **own), "b": heard(2, NAMES, **(others or {}))}
    hosts = tuple(Host(name, f"10.0.0.{n}") for n, name in enumerate(NAMES, 1))
    of = report(recording(NAMES, heard=answers, hosts=hosts, mesh=seen))
    return {found.check: found for found in of.findings if found.status in (Status.FAIL, Status.WARN)}


OUT = "100:\tfrom all to 10.0.0.0/24 lookup 100\n", "default dev mgmt0 table 100\n"
DIVERTED = from_cases(__file__, "DIVERTED", dict[str, tuple[str, ...]])


@pytest.mark.parametrize("name", DIVERTED)
def test_a_rule_that_takes_the_packets_of_the_job_away(name: str) -> None:
    own = {"policy": policy(*DIVERTED[name]), "addresses": TWO_CARDS}
    found = examined(mesh(NAMES, *BOTH), own)
    guilty = found["rule-diverts-traffic"]
    assert (guilty.status, guilty.hosts) == (Status.FAIL, ("a",))
    symptom = found["port-unreachable"]
    assert (symptom.hosts, symptom.because) == (("a",), guilty.id), "the other host is not blamed"
    assert guilty.remedy
    rule = policy(*DIVERTED[name]).split("100:\t")[1].partition("\n")[0]
    assert f"sudo ip rule del priority 100 {rule}" in guilty.remedy.commands, (
        "others may have the same number"
    )


def test_a_rule_that_only_takes_another_network_is_a_warning() -> None:
    own = {"policy": policy(*OUT), "addresses": TWO_CARDS}
    for seen in (mesh(NAMES), None):
        found = examined(seen, own)["rule-diverts-traffic"]
        assert found.status is Status.WARN
        assert "out by mgmt0, not by eth0" in found.summary
    prohibited = {"policy": policy(*DIVERTED["a prohibiting rule"])}
    assert examined(None, prohibited)["rule-diverts-traffic"].status is Status.FAIL
    assert "rule-diverts-traffic" not in examined(mesh(NAMES), prohibited), "something else lets them through"


SOUND = from_cases(__file__, "SOUND", dict[str, tuple[str, ...]])


@pytest.mark.parametrize("name", SOUND)
def test_rules_of_hosts_with_several_networks(name: str) -> None:
    own = {"policy": policy(*SOUND[name]), "addresses": TWO_CARDS}
    assert examined(mesh(NAMES), own) == {}
    assert examined(None, own) == {}


def test_an_address_of_the_host_rather_than_of_an_interface() -> None:
    """Hosts that use BGP add it to lo."""
    own = {
        "policy": policy("100:\tfrom all lookup 7\n", "10.0.0.0/24 dev mgmt0 table 7\n"),
        "addresses": f"1: lo inet 10.0.0.1/32 scope global\n{TWO_CARDS.replace('10.0.0.1', '10.7.0.1')}",
    }
    assert "rule-diverts-traffic" not in examined(mesh(NAMES), own)


def test_a_firewall_is_not_blamed_on_a_rule() -> None:
    """It is only mentioned that a neighbour is reached through a gateway; unless there is no route, both
    hosts stay suspects.
    """
    own = {"policy": policy(*SOUND["a table for each network"]), "addresses": TWO_CARDS}
    assert examined(mesh(NAMES, *BOTH), own).keys() == {"port-unreachable"}
    own = {"policy": policy(*SOUND["a gateway of that network"]), "addresses": TWO_CARDS}
    found = examined(mesh(NAMES, *BOTH), own)
    assert found["rule-diverts-traffic"].status is Status.WARN
    assert "to 10.0.0.1, and connections fail" in found["rule-diverts-traffic"].summary
    assert set(found["port-unreachable"].hosts) == {"a", "b"}
    seen = mesh(NAMES, *BOTH)
    links = tuple(replace(one, outcome="no-route") if one.source == "a" else one for one in seen.links)
    found = examined(replace(seen, links=links), own)
    assert found["rule-diverts-traffic"].status is Status.FAIL
    assert "to 10.0.0.1, which does not answer" in found["rule-diverts-traffic"].summary
    assert found["port-unreachable"].hosts == ("a",)


def test_a_dead_peer_is_not_blamed_on_a_rule_by_which_others_are_reached() -> None:
    names = ["a", "b", "c"]
    own = {"policy": policy(*OUT), "addresses": TWO_CARDS}
    answers = {name: heard(n, names, **(own if n == 1 else {})) for n, name in enumerate(names, 1)}
    hosts = tuple(Host(name, f"10.0.0.{n}") for n, name in enumerate(names, 1))
    seen = mesh(names, ("a", "c"), ("c", "a"), ("b", "c"), ("c", "b"))
    of = report(recording(names, heard=answers, hosts=hosts, mesh=seen))
    found = [(each.check, each.hosts) for each in of.findings if each.status is Status.FAIL]
    assert found == [("port-unreachable", ("c",))]
    warned = [each for each in of.findings if each.check == "rule-diverts-traffic"]
    assert {each.status for each in warned} == {Status.WARN}
    assert any("and connections fail" in each.summary for each in warned)


def test_without_rules_of_its_own_nothing_is_printed() -> None:
    assert printed(POLICY, "").rules == ()
    assert printed(POLICY, policy("")).rules == (), "busybox prints the kernel's rules otherwise"


# mac-address-twice


def cards(mac: str, lower: str = "2") -> dict[str, Any]:
    card = {"mtu": "1500", "address": mac, "iflink": lower}
    return {"links": {f"/sys/class/net/eth0/{name}": text for name, text in card.items()}}


def machine(boot: str, **more: Any) -> dict[str, Any]:
    files = {"/proc/sys/kernel/random/boot_id": boot, "/proc/self/mountinfo": f"{boot} 1 0:1 / / rw"}
    return {**cards("52:54:00:12:34:56"), "machine": files, **more}


BY_GATEWAY = from_cases(__file__, "BY_GATEWAY", dict[str, str])


@pytest.mark.parametrize("seen", [mesh(NAMES, *BOTH), mesh(NAMES), None])
@pytest.mark.parametrize(
    "other", [machine("2"), machine("1", **cards("52:54:00:12:34:56", "7"))], ids=["machines", "namespaces"]
)
def test_two_hosts_with_one_mac_address(seen: MeshResult | None, other: dict[str, Any]) -> None:
    found = examined(seen, machine("1"), other)["mac-address-twice"]
    works = seen is not None and not seen.links[0].failed
    assert found.status is (Status.WARN if works else Status.FAIL)
    assert set(found.hosts) == {"a", "b"}
    assert "52:54:00:12:34:56 on" in (found.actual or "")


@pytest.mark.parametrize(
    ("own", "others"),
    [
        (machine("1"), machine("2", **cards("52:54:00:12:34:57"))),
        (machine("1"), machine("1")),
        (machine("1", routes=BY_GATEWAY), machine("2", routes=BY_GATEWAY)),
        (machine("1", **cards("00:00:00:00:00:00")), machine("2", **cards("00:00:00:00:00:00"))),
        (machine("1", **cards("")), machine("2", **cards(""))),
    ],
    ids=["others", "containers of one machine", "behind routers", "tunnels", "none"],
)
def test_hosts_whose_mac_addresses_do_not_meet(own: dict[str, Any], others: dict[str, Any]) -> None:
    assert examined(mesh(NAMES), own, others) == {}


# loopback-down


@cases
def test_the_loopback_interface_is_unusable(own: dict[str, Any], says: str) -> None:
    found = examined(mesh(NAMES), own)
    assert found.keys() == {"loopback-down"}
    assert found["loopback-down"].hosts == ("a",)
    assert says in found["loopback-down"].summary


def test_a_host_without_an_address_has_no_loopback_address() -> None:
    assert "has no 127.0.0.1" in examined(mesh(NAMES), {"addresses": "addresses:"})["loopback-down"].summary


@pytest.mark.parametrize("flags", ["0x9", "0x49", "", "?"])
def test_the_loopback_interface_is_up(flags: str) -> None:
    own = {"links": {"/sys/class/net/lo/mtu": "65536", "/sys/class/net/lo/flags": flags}}
    assert examined(mesh(NAMES), own) == {}


# No inodes


def spaces(**inodes: str) -> dict[str, str]:
    """The answer of a host with these rows of `df -i`: total, used and free."""
    plain = heard(1, NAMES).captures["spaces"].stdout
    rows = {"tmp": "/", "root": "/", "shm": "/dev/shm"}
    lines = (f"dev {inodes.get(name, '1000000 7 999993')} 1% {mount}\n" for name, mount in rows.items())
    return {"spaces": f"{plain}inodes\nFilesystem Inodes IUsed IFree IUse% Mounted on\n{''.join(lines)}"}


@cases_with(spaces)
def test_no_inode_is_left(own: dict[str, str], check: str) -> None:
    found = examined(mesh(NAMES), own)
    assert found.keys() == {check}
    assert (found[check].status, found[check].hosts) == (Status.FAIL, ("a",))
    assert "no inodes left" in found[check].summary


@pytest.mark.parametrize("row", ["0 0 0", "- - -", "28363 28364 -1", "4096 4000 96", "nonsense"])
def test_inodes_that_are_not_limited_or_suffice(row: str) -> None:
    assert examined(mesh(NAMES), spaces(tmp=row, root=row, shm=row)) == {}
