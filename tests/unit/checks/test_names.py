"""Hosts that share a name: one machine that is listed twice, or several with the same name."""

import pytest

from doctor.facts.system import Machine
from doctor.model import Host
from doctor.report.page.names import culprit
from doctor.rules.machines import named_twice
from tests.support.cases import cases_with
from tests.support.recordings import heard, recording, report

NAMES = ["a", "b", "c"]
BOOT = "0f9e3b6c-4a0e-4f6e-9c57-6a2c1d1f8a11"


def machine(boot: str, root: int) -> dict[str, str]:
    return {
        "/proc/sys/kernel/random/boot_id": boot,
        "/proc/self/mountinfo": f"{root} 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw",
    }


def found(second: dict[str, str] | None, number: int = 1) -> dict[str, tuple[str, ...]]:
    """Check -> hosts, if `b` is called `a` and has the addresses of 10.0.0.NUMBER."""
    called = {"/proc/sys/kernel/hostname": "a"}
    address = f"1: lo inet 127.0.0.1/8 scope\n2: eth0 inet 10.0.0.{number}/24 scope global"
    answers = {"a": heard(1, NAMES, machine=machine(BOOT, 28), identity=called)}
    twin = {"machine": second} if second else {}
    answers["b"] = heard(2, NAMES, identity=called, addresses=address, **twin)
    hosts = tuple(Host(name, f"10.0.0.{n}") for n, name in enumerate(NAMES, 1))
    of = report(recording(NAMES, heard=answers, hosts=hosts))
    wanted = ("host-named-twice", "hostname-duplicate", "data-address-duplicate")
    return {one.check: one.hosts for one in of.findings if one.check in wanted}


def test_one_machine_is_listed_twice() -> None:
    assert found(machine(BOOT, 28)) == {"host-named-twice": ("b",)}


@cases_with(machine)
def test_others_are_told_apart_although_they_share_name_and_address(second: dict[str, str] | None) -> None:
    assert found(second) == {"hostname-duplicate": ("a", "b"), "data-address-duplicate": ("a", "b")}


def test_a_virtual_machine_that_was_copied_while_it_ran_is_another_machine() -> None:
    assert found(machine(BOOT, 28), number=2) == {"hostname-duplicate": ("a", "b")}


def test_hosts_whose_addresses_were_not_read_are_not_taken_for_one_machine() -> None:
    same = Machine(BOOT, "28")
    assert named_twice({"a": "a", "b": "a"}, {"a": same, "b": same}, {"a": {}, "b": {}}) == {}


@pytest.mark.parametrize("own", ["localhost", "localhost.localdomain"])
def test_a_host_that_calls_itself_localhost_keeps_localhost(own: str) -> None:
    told = {"names": f"? {own}\n127.0.0.1 STREAM {own}\n? b\n10.0.0.2 STREAM b\n"}
    of = report(recording(NAMES, heard={"a": heard(1, NAMES, **told)}))
    (one,) = [each for each in of.findings if each.check == "hostname-loopback"]
    assert one.summary == "it has no name of its own: it calls itself localhost"
    assert one.remedy
    assert one.remedy.commands[0] == "sudo hostnamectl set-hostname NEW-NAME"
    assert not any("sed" in command for command in one.remedy.commands)


def test_names_with_addresses_that_their_hosts_do_not_have_are_one_finding() -> None:
    """As a shifted /etc/hosts gives one for each host, and no host is at fault."""
    shifted = "".join(f"? {name}\n10.0.0.{n + 7} STREAM {name}\n" for n, name in enumerate(NAMES, 1))
    of = report(
        recording(NAMES, heard={name: heard(n, NAMES, names=shifted) for n, name in enumerate(NAMES, 1)})
    )
    (one,) = [each for each in of.findings if each.check == "names-disagree"]
    assert one.summary == "3 names resolve to addresses that their hosts do not have"
    assert (one.hosts, culprit(one)) == ((), "names a,b,c")
    assert one.actual == "a is 10.0.0.8 on 2 hosts; b is 10.0.0.9 on 2 hosts; c is 10.0.0.10 on 2 hosts"
