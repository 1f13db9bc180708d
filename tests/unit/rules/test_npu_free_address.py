"""The suggestion for an NPU without an address is a free address that fits the others."""

from doctor.facts.ascend.network import Address
from doctor.rules.devices import HostDevice
from doctor.rules.npu_free_address import free_addresses

HOSTS = ["node1", "node2", "node3", "node4"]
Held = dict[HostDevice, Address]


def rails(hosts: int = 4, devices: int = 8) -> Held:
    """Device i of host h has 10.20.i.h: one network for each device number."""
    return {
        (f"node{h}", i): Address(f"10.20.{i}.{h}", 24) for h in range(1, hosts + 1) for i in range(devices)
    }


def flat(hosts: int = 4) -> Held:
    """Eight in a row for each host, in one network."""
    return {
        (f"node{h}", i): Address(f"10.30.0.{8 * h + i}", 16) for h in range(1, hosts + 1) for i in range(8)
    }


def offered(held: Held, *lost: HostDevice, taken: frozenset[str] = frozenset()) -> list[str]:
    left = {seat: address for seat, address in held.items() if seat not in lost}
    found = free_addresses(lost, left, HOSTS, taken)
    return [f"{found[seat].ip}/{found[seat].prefix}" for seat in lost if seat in found]


def test_the_one_that_was_lost_is_found_again() -> None:
    for held in (rails(), flat()):
        for seat in (("node1", 0), ("node3", 3), ("node4", 7)):
            assert offered(held, seat) == [f"{held[seat].ip}/{held[seat].prefix}"]


def test_several_devices_get_one_each() -> None:
    assert offered(rails(), ("node2", 1), ("node2", 5)) == ["10.20.1.2/24", "10.20.5.2/24"]
    whole_host = [("node3", device) for device in range(8)]
    assert offered(rails(), *whole_host) == [f"10.20.{device}.3/24" for device in range(8)]


def test_one_that_is_taken_is_not_offered() -> None:
    held = {**rails(), ("node9", 3): Address("10.20.3.2", 24)}
    assert offered(held, ("node2", 3)) == ["10.20.3.5/24"]
    assert offered(rails(2), ("node2", 3), taken=frozenset({"10.20.3.2"})) == ["10.20.3.3/24"]


def test_two_hosts_are_no_sequence_and_the_next_free_one_is_offered() -> None:
    held = {("node1", 0): Address("10.20.0.7", 24)}
    assert offered(held, ("node2", 0), ("node3", 0)) == ["10.20.0.8/24", "10.20.0.9/24"]


def test_nothing_is_offered_where_nothing_says_which_network() -> None:
    assert offered({}, ("node1", 0)) == []
    assert offered({("node1", 1): Address("10.20.1.1", 24)}, ("node1", 0)) == []
    full = {("node1", 0): Address("10.20.0.1", 30), ("node2", 0): Address("10.20.0.2", 30)}
    assert offered(full, ("node3", 0)) == []
    assert offered({("node1", 0): Address("fd00::1", 64)}, ("node2", 0)) == []
