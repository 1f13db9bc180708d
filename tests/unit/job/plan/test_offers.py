"""The interface that gloo, NCCL and HCCL would choose: their rules, applied to realistic interfaces."""

import pytest

from doctor.job.plan import LIBRARIES, missing_interfaces
from doctor.model import Backend
from tests.support.cases import cases, from_cases

HOST = from_cases(__file__, "HOST", dict[str, tuple[str, ...]])
PLAIN = {name: HOST[name] for name in ("lo", "docker0", "eth0")}


def offered(backend: Backend, interfaces: dict[str, tuple[str, ...]], *own: str, **env: str) -> str:
    offer = LIBRARIES[backend](env, interfaces, own)
    return f"{offer.address} {offer.interface}" if offer else ""


@cases
def test_gloo_takes_the_first_address_of_the_own_name_that_it_can_bind(own: list[str], expected: str) -> None:
    assert offered(Backend.GLOO, PLAIN, *own) == expected


@cases
def test_gloo_takes_exact_names(wish: str, expected: str) -> None:
    assert offered(Backend.GLOO, PLAIN, "172.17.0.1", GLOO_SOCKET_IFNAME=wish) == expected


def test_gloo_offers_an_address_whose_interface_nothing_tells() -> None:
    assert offered(Backend.GLOO, {"": ("172.17.0.1", "10.0.0.1")}, "172.17.0.1") == "172.17.0.1 "
    assert offered(Backend.NCCL, {"": ("172.17.0.1", "10.0.0.1")}) == ""


@cases
def test_the_order_of_nccl(names: str, expected: str) -> None:
    assert offered(Backend.NCCL, {name: HOST[name] for name in names.split()}) == expected


@cases
@pytest.mark.parametrize("backend", [Backend.NCCL, Backend.HCCL])
def test_prefixes_exclusions_and_exact_names(backend: Backend, wish: str, expected: str) -> None:
    host = {name: HOST[name] for name in ("lo", "eth0", "docker0")}
    host |= {"ib0": HOST["ib0"]} if "ib" in wish else {}
    variable = LIBRARIES[backend].variable
    assert offered(backend, host, **{variable: wish}) == expected


def test_other_variables_of_nccl() -> None:
    assert offered(Backend.NCCL, HOST, NCCL_SOCKET_FAMILY="AF_INET6") == "fd00::1 ib0"
    assert offered(Backend.NCCL, HOST, NCCL_COMM_ID="10.0.0.9:29500") == ""


@cases
def test_the_order_of_hccl(names: str, expected: str) -> None:
    assert offered(Backend.HCCL, {name: HOST[name] for name in names.split()}) == expected


def test_an_address_for_hccl_comes_before_an_interface() -> None:
    assert offered(Backend.HCCL, HOST, HCCL_IF_IP="10.1.0.1", HCCL_SOCKET_IFNAME="eth0") == "10.1.0.1 ib0"
    assert offered(Backend.HCCL, HOST, HCCL_IF_IP="10.9.0.1", HCCL_SOCKET_IFNAME="eth0") == ""


@cases
def test_what_names_no_interface(variable: str, wish: str, missing: str) -> None:
    assert missing_interfaces(variable, wish, HOST) == missing
