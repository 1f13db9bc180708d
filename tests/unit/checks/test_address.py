"""Hosts that report the same data address."""

from dataclasses import replace

import pytest

from doctor.job.wishes import JobWishes
from doctor.model import Finding, Host, UnreachedHost, UnreachedKind
from tests.support.cases import cases
from tests.support.recordings import heard, mesh, recording, report

NAMES = ["n1", "n2", "n3"]


@cases
def test_two_hosts_share_one_address(dialled: str, found: list[tuple[str, ...]]) -> None:
    """If both are on one machine and share its network, their ranks differ by port."""
    run = recording(NAMES, heard={"n2": replace(heard(2, NAMES), captures=heard(1, NAMES).captures)})
    hosts = (
        Host("n1", "10.0.0.1", data="10.0.0.1"),
        Host("n2", dialled, data="10.0.0.1"),
        Host("n3", "10.0.0.3", data="10.0.0.3"),
    )
    seen = report(replace(run, hosts=hosts))
    assert [each.hosts for each in seen.findings if each.check == "data-address-duplicate"] == found


BESIDE = "1: lo inet 127.0.0.1/8\n2: eth0 inet 10.0.0.1/24\n{} inet 10.0.0.2/24 scope global secondary\n"


def beside(interface: str, *failed: tuple[str, str]) -> list[Finding]:
    hosts = tuple(Host(name, f"10.0.0.{n}") for n, name in enumerate(NAMES, 1))
    heard_of = {"n1": heard(1, NAMES, addresses=BESIDE.format(interface))}
    of = report(recording(NAMES, hosts=hosts, heard=heard_of, mesh=mesh(NAMES, *failed)))
    return [each for each in of.findings if each.check in ("data-address-duplicate", "port-unreachable")]


def test_a_host_that_has_the_address_of_another_beside_its_own() -> None:
    (works,) = beside("2: eth0")
    assert (works.hosts, works.status.value) == (("n1",), "warn")
    assert works.actual == "10.0.0.2 on eth0, beside 10.0.0.1"
    guilty, symptom = beside("2: eth0", ("n1", "n2"), ("n2", "n1"))
    assert (guilty.check, guilty.hosts, guilty.status.value) == ("data-address-duplicate", ("n1",), "fail")
    assert (symptom.because, symptom.hosts) == (guilty.id, ("n1",)), "the owner is not blamed"


@pytest.mark.parametrize("interface", ["3: dummy0", "1: lo", "4: kube-ipvs0", "5: docker0"])
def test_an_address_that_no_packet_leaves_by(interface: str) -> None:
    """Real servers behind a load balancer have the address of the load balancer there."""
    assert beside(interface) == []


def test_the_owner_cannot_be_asked_because_another_host_answers() -> None:
    hosts = tuple(Host(name, f"10.0.0.{n}") for n, name in enumerate(NAMES, 1))
    unreached = {"n2": UnreachedHost("n2", UnreachedKind.KEY_CHANGED, "key changed", "", ())}
    of = recording(NAMES, hosts=hosts, heard={"n1": heard(1, NAMES, addresses=BESIDE.format("2: eth0"))})
    rest = {name: answer for name, answer in of.heard.items() if name != "n2"}
    seen = report(replace(of, heard=rest, unreached=unreached, mesh=mesh(["n1", "n3"])))
    (one,) = [each for each in seen.findings if each.check == "data-address-duplicate"]
    assert (one.hosts, one.status.value) == (("n1",), "fail")


def test_an_interface_of_the_launch_with_one_address_on_all_hosts() -> None:
    """As docker0: the launch is at fault, and no host."""
    listed = "1: lo inet 127.0.0.1/8\n2: eth0 inet 10.0.0.{}/24\n3: docker0 inet 172.17.0.1/16\n"
    own = {name: heard(n, NAMES, addresses=listed.format(n)) for n, name in enumerate(NAMES, 1)}
    wishes = JobWishes(env={"GLOO_SOCKET_IFNAME": "docker0"})
    seen = report(recording(NAMES, heard=own, wishes=wishes))
    (found,) = [each for each in seen.findings if each.check == "data-address-duplicate"]
    assert (found.hosts, found.status.value) == ((), "fail")
    assert "GLOO_SOCKET_IFNAME of the launch names 172.17.0.1, which every host has" in found.summary
    sound = JobWishes(env={"GLOO_SOCKET_IFNAME": "eth0"})
    seen = report(recording(NAMES, heard=own, wishes=sound))
    assert not [each for each in seen.findings if each.check == "data-address-duplicate"]
