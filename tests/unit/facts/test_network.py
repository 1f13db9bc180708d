"""Parsers of interfaces, routes, listeners and names, on real output."""

from ipaddress import IPv4Network

import pytest

from doctor.api import Capture
from doctor.errors import UnreadableOutput
from doctor.facts.network import ADDRESSES, LINKS, LISTENERS, NAMES, ROUTES, BoundPort, Counters, Route
from tests.support.captures import held, printed, sample
from tests.support.cases import cases, from_cases

BUSYBOX_IP = from_cases(__file__, "BUSYBOX_IP", str)
ROUTE_TABLE = from_cases(__file__, "ROUTE_TABLE", str)


def test_addresses() -> None:
    assert printed(ADDRESSES, sample("host/ip_o4_addr.txt")) == {
        "lo": ("127.0.0.1",),
        "eth0": ("192.168.7.100",),
    }
    assert printed(ADDRESSES, BUSYBOX_IP) == {"lo": ("127.0.0.1",), "eth0": ("192.0.2.2", "fd00::2")}


def test_addresses_of_a_container_interface_and_old_ones() -> None:
    text = (
        "2: eth0@if7    inet6 fd00::9/64 scope global deprecated dynamic \\ valid_lft 5sec\n"
        "2: eth0@if7    inet6 fd00::8/64 scope global dynamic \\ valid_lft 5sec\n"
        "2: eth0@if7    inet 10.0.0.8/24 brd 10.0.0.255 scope global eth0\\ valid_lft forever\n"
        "3: wg0    inet 10.9.9.9 peer 10.9.9.1/32 scope global wg0\\ valid_lft forever\n"
        "4: bad0    inet 10.999.0.1/8 scope global bad0\\ valid_lft forever\n"
    )
    assert printed(ADDRESSES, text) == {"eth0": ("10.0.0.8", "fd00::8"), "wg0": ("10.9.9.9",)}


def test_an_address_with_a_name_of_its_own_is_listed_under_both() -> None:
    """Libraries find it by that name; the link, the routes and the firewall only know the interface."""
    text = (
        "2: eth0    inet 10.0.0.8/24 brd 10.0.0.255 scope global eth0\\       valid_lft forever\n"
        "2: eth0    inet 10.0.0.9/24 scope global secondary eth0:1\\       valid_lft forever\n"
        "5: eth0.7@eth0    inet 10.7.0.8/24 scope global eth0.7\\       valid_lft forever\n"
    )
    assert printed(ADDRESSES, text) == {
        "eth0": ("10.0.0.8", "10.0.0.9"),
        "eth0:1": ("10.0.0.9",),
        "eth0.7": ("10.7.0.8",),
    }


@pytest.mark.parametrize("text", ["", "[N/A]", "1: lo: <LOOPBACK,UP>", "命令未找到", "\x1b[2J"])
def test_addresses_not_understood(text: str) -> None:
    with pytest.raises(UnreadableOutput, match="no address"):
        printed(ADDRESSES, text)


def test_a_host_without_an_address() -> None:
    """As in a new network namespace. It is known then that nobody reaches it, not even itself."""
    assert printed(ADDRESSES, "addresses:\n") == {}


def test_a_complaint_is_not_a_host_without_an_address() -> None:
    with pytest.raises(UnreadableOutput, match="no address"):
        ADDRESSES.parse(Capture("addresses", 0, "addresses:\n", "Cannot open netlink socket"))


def test_links() -> None:
    base = "/sys/class/net"
    assert held(
        LINKS,
        {
            f"{base}/eth0/mtu": "9000",
            f"{base}/eth0/speed": "100000",
            f"{base}/eth0/statistics/rx_errors": "3",
            f"{base}/eth0/statistics/tx_errors": "4",
            f"{base}/veth1/mtu": "1500",
            f"{base}/veth1/speed": "-1",
        },
    ) == {"eth0": Counters(9000, 100000, 7), "veth1": Counters(1500, None, 0)}


@pytest.mark.parametrize("line", ["/sys/class/net", "/sys/class/net/eth0:5", "/a/b:c"])
def test_links_of_nonsense(line: str) -> None:
    assert printed(LINKS, line) == {}


def test_routes() -> None:
    routes = held(ROUTES, {"/proc/net/route": ROUTE_TABLE})
    assert routes.routes[0] == Route("eth0", IPv4Network("0.0.0.0/0"), 100, "192.0.2.1")
    assert routes.default_interface == "eth0"
    ways = {"192.0.2.9": "eth0", "10.1.2.3": "ib0", "192.168.1.1": "eth0", "fd00::1": None, "": None}
    assert {address: routes.towards(address) for address in ways} == ways


def test_no_routes() -> None:
    assert held(ROUTES, {"/proc/net/route": ROUTE_TABLE.splitlines()[0]}).default_interface is None


# As /proc/net/tcp and tcp6 print listeners on 0.0.0.0:29500, 127.0.0.1:8118 and [::]:60000.
LISTENING = from_cases(__file__, "LISTENING", str)


def test_listeners() -> None:
    assert printed(LISTENERS, LISTENING) == (
        BoundPort("0.0.0.0", 29500, "python3 (pid 20)", (20, 7)),
        BoundPort("127.0.0.1", 8118, ""),
        BoundPort("::", 60000, ""),
    )


def test_a_mapped_ipv6_address_is_read_as_its_ipv4_address() -> None:
    mapped = LISTENING.replace("0" * 32 + ":EA60", "0000000000000000FFFF00000100000A:EA60")
    assert BoundPort("10.0.0.1", 60000, "") in printed(LISTENERS, mapped)


@cases
def test_what_a_listener_covers(bound: str, own: str | None, collides: bool) -> None:
    assert BoundPort(bound, 1, "").covers(own) is collides


def test_no_listeners_and_no_table() -> None:
    assert printed(LISTENERS, "listeners\n") == ()
    with pytest.raises(UnreadableOutput, match="no head"):
        printed(LISTENERS, "")


def test_names() -> None:
    text = (
        "? node1\n127.0.1.1       STREAM node1\n127.0.1.1       DGRAM  \n"
        "? node2\n"
        "? node3\n10.0.0.3 STREAM node3\nfd00::3 STREAM \n10.0.0.3 DGRAM\n"
    )
    names = printed(NAMES, text)
    assert names.own == "node1"
    assert names.addresses == {"node1": ("127.0.1.1",), "node2": (), "node3": ("10.0.0.3", "fd00::3")}


def test_no_names() -> None:
    with pytest.raises(UnreadableOutput, match="no name"):
        printed(NAMES, "getent: not found\n")


def test_addresses_as_the_kernel_tells_them_where_there_is_no_ip() -> None:
    text = (
        "addresses:\n0: lo inet 127.0.0.1 lo\n0: eth0 inet 192.0.2.2 eth0\n0: eth0 inet 10.9.0.6 eth0:1\n"
        "0: eth0 inet6 fd00::2 \n0: eth0 inet6 fd00::6 deprecated\n0: lo inet6 ::1 \n"
    )
    assert printed(ADDRESSES, text) == {
        "lo": ("127.0.0.1", "::1"),
        "eth0": ("192.0.2.2", "10.9.0.6", "fd00::2"),
        "eth0:1": ("10.9.0.6",),
    }
    assert printed(ADDRESSES, "addresses:\n\n") == {}


def test_addresses_without_ip() -> None:
    assert printed(ADDRESSES, "no ip: 10.0.0.1 fd00::1 \n") == {"?": ("10.0.0.1", "fd00::1")}
    with pytest.raises(UnreadableOutput, match="no address"):
        printed(ADDRESSES, "no ip: \n")


def test_names_that_were_looked_up_before_the_time_ran_out() -> None:
    """A name whose look-up was cut off was not looked up, so it is not "not found"."""
    text = "? node1\n10.0.0.1 STREAM node1\n? gone\n? node2\n"
    found = NAMES.parse(Capture("names", 137, text)).addresses
    assert found == {"node1": ("10.0.0.1",), "gone": ()}
    with pytest.raises(UnreadableOutput, match="did not end in time"):
        NAMES.parse(Capture("names", 137, "? node1\n"))
