"""The interface that gloo, NCCL and HCCL would choose: their rules, applied to realistic interfaces."""

from __future__ import annotations

import pytest

from doctor.job.plan import LIBRARIES, missing_interfaces
from doctor.model import Backend

HOST = {
    "lo": ("127.0.0.1", "::1"),
    "eth0": ("10.0.0.1", "fe80::1"),
    "docker0": ("172.17.0.1",),
    "br-4f1a": ("172.18.0.1",),
    "ib0": ("10.1.0.1", "fd00::1"),
    "virbr0": ("192.168.122.1",),
}
PLAIN = {name: HOST[name] for name in ("lo", "docker0", "eth0")}


def offered(backend: Backend, interfaces: dict[str, tuple[str, ...]], *own: str, **env: str) -> str:
    offer = LIBRARIES[backend](env, interfaces, own)
    return f"{offer.address} {offer.interface}" if offer else ""


@pytest.mark.parametrize(
    ("own", "expected"),
    [
        (["10.0.0.1"], "10.0.0.1 eth0"),
        (["172.17.0.1"], "172.17.0.1 docker0"),
        (["127.0.1.1", "10.0.0.1"], "127.0.1.1 lo"),
        (["192.0.2.7", "10.0.0.1"], "10.0.0.1 eth0"),  # it cannot bind the first one
        (["192.0.2.7"], "127.0.0.1 lo"),
        ([], "127.0.0.1 lo"),
    ],
)
def test_gloo_takes_the_first_address_of_the_own_name_that_it_can_bind(own: list[str], expected: str) -> None:
    assert offered(Backend.GLOO, PLAIN, *own) == expected


@pytest.mark.parametrize(
    ("wish", "expected"),
    [
        ("eth0", "10.0.0.1 eth0"),
        ("docker0,eth0", "172.17.0.1 docker0"),
        ("e", "172.17.0.1 docker0"),  # a value of one character is ignored
        ("eth", ""),  # it does not accept a prefix
        ("=eth0", ""),
    ],
)
def test_gloo_takes_exact_names(wish: str, expected: str) -> None:
    assert offered(Backend.GLOO, PLAIN, "172.17.0.1", GLOO_SOCKET_IFNAME=wish) == expected


def test_gloo_offers_an_address_whose_interface_nothing_tells() -> None:
    assert offered(Backend.GLOO, {"": ("172.17.0.1", "10.0.0.1")}, "172.17.0.1") == "172.17.0.1 "
    assert offered(Backend.NCCL, {"": ("172.17.0.1", "10.0.0.1")}) == ""


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        ("lo eth0 docker0 ib0", "10.1.0.1 ib0"),
        ("lo docker0 eth0", "10.0.0.1 eth0"),
        ("lo virbr0 br-4f1a eth0", "172.18.0.1 br-4f1a"),
        ("lo virbr0 docker0", "172.17.0.1 docker0"),
        ("lo virbr0", "127.0.0.1 lo"),
    ],
)
def test_the_order_of_nccl(names: str, expected: str) -> None:
    assert offered(Backend.NCCL, {name: HOST[name] for name in names.split()}) == expected


@pytest.mark.parametrize(
    ("wish", "expected"),
    [
        ("eth", "10.0.0.1 eth0"),
        ("=eth", ""),
        ("=eth0", "10.0.0.1 eth0"),
        ("ib,eth", "10.0.0.1 eth0"),  # in the host's order
        ("^docker,lo", "10.0.0.1 eth0"),
        ("^docker", "127.0.0.1 lo"),
        ("^=lo,eth0", "172.17.0.1 docker0"),
    ],
)
@pytest.mark.parametrize("backend", [Backend.NCCL, Backend.HCCL])
def test_prefixes_exclusions_and_exact_names(backend: Backend, wish: str, expected: str) -> None:
    host = {name: HOST[name] for name in ("lo", "eth0", "docker0")}
    host |= {"ib0": HOST["ib0"]} if "ib" in wish else {}
    variable = LIBRARIES[backend].variable
    assert offered(backend, host, **{variable: wish}) == expected


def test_other_variables_of_nccl() -> None:
    assert offered(Backend.NCCL, HOST, NCCL_SOCKET_FAMILY="AF_INET6") == "fd00::1 ib0"
    assert offered(Backend.NCCL, HOST, NCCL_COMM_ID="10.0.0.9:29500") == ""


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        ("lo docker0 eth0", "10.0.0.1 eth0"),
        ("lo eth0 docker0 br-4f1a", "172.18.0.1 br-4f1a"),  # by name
        ("lo docker0", "172.17.0.1 docker0"),
        ("lo", "127.0.0.1 lo"),
    ],
)
def test_the_order_of_hccl(names: str, expected: str) -> None:
    assert offered(Backend.HCCL, {name: HOST[name] for name in names.split()}) == expected


def test_an_address_for_hccl_comes_before_an_interface() -> None:
    assert offered(Backend.HCCL, HOST, HCCL_IF_IP="10.1.0.1", HCCL_SOCKET_IFNAME="eth0") == "10.1.0.1 ib0"
    assert offered(Backend.HCCL, HOST, HCCL_IF_IP="10.9.0.1", HCCL_SOCKET_IFNAME="eth0") == ""


@pytest.mark.parametrize(
    ("variable", "wish", "missing"),
    [
        ("GLOO_SOCKET_IFNAME", "eth0,bond0", "bond0"),
        ("GLOO_SOCKET_IFNAME", "eth", "eth"),
        ("GLOO_SOCKET_IFNAME", "e", ""),
        ("NCCL_SOCKET_IFNAME", "bond,eth", ""),
        ("NCCL_SOCKET_IFNAME", "=eth,bond", "=eth,bond"),
        ("NCCL_SOCKET_IFNAME", "^eth,docker,ib,br,virbr", "^eth,docker,ib,br,virbr"),
        ("HCCL_SOCKET_IFNAME", "x", "x"),
        ("HCCL_SOCKET_IFNAME", "", ""),
    ],
)
def test_what_names_no_interface(variable: str, wish: str, missing: str) -> None:
    assert missing_interfaces(variable, wish, HOST) == missing
