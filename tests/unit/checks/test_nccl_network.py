"""Which network NCCL says that it takes, against the ports that the hosts have."""

from collections.abc import Mapping
from typing import Any

import pytest

from checks.infiniband import smoke_gpudirect_off, smoke_network_unused
from doctor.api import Severity, Skip
from doctor.facts.infiniband import InfinibandPort
from doctor.facts.smoke import JudgedRun, SmokeRounds
from doctor.facts.software import Environment
from doctor.smoke.events import Collectives
from tests.support.number_rows.devices import job
from tests.support.smoke.results import healthy, plan_of, with_rank

IB = ("NET/IB : Using [0]mlx5_0:1/IB [RO]; OOB ib0:10.0.0.1<0>", "Using network IB", "via NET/IB/0/GDRDMA")
PLAIN = (*IB[:2], "NET/IB : GPU Direct RDMA Disabled for HCA 0 'mlx5_0'", "via NET/IB/0", "via NET/IB/1")
WHY = "WARN Failed to open libibverbs.so[.1]"
SOCKETS = (WHY, "NET/Socket : Using [0]eth0:10.0.0.1<0>", "Using network Socket", "via NET/Socket/0")
CLOUD = ("Using network AWS Libfabric", "via NET/AWS Libfabric/0/GDRDMA")
MUTE = ("NET/Plugin: Could not find: libnccl-net.so.",)


def rounds(*told: tuple[str, ...], products: tuple[str, ...] = ("H100",) * 4) -> SmokeRounds:
    """Two ranks on each host, of which all but the last say this."""
    result = healthy(plan_of(hosts=len(told), each=2, backend="nccl"))
    for rank, seen in enumerate(result.ranks):
        assert seen.started
        started = replace_started(seen.started, products[rank // 2])
        result = with_rank(result, rank, collectives=Collectives(9, network=told[rank // 2]), started=started)
    return SmokeRounds((JudgedRun(result, ()),))


def replace_started(started: Any, product: str) -> Any:
    return type(started)(started.versions, started.streams, started.golden, product)


def port(state: str = "active", layer: str = "InfiniBand", name: str = "mlx5_0") -> InfinibandPort:
    return InfinibandPort(name, 1, state, "LinkUp", "200 Gb/sec (4X HDR)", layer)


def unused(
    *told: tuple[str, ...], own: InfinibandPort | None = None, login: Mapping[str, str] = {}
) -> list[tuple[tuple[str, ...], Severity | None]]:
    seen = rounds(*told)
    ports = {host: [own or port()] for host in seen.hosts}
    logins = {host: Environment({**login}) for host in seen.hosts}
    found = [*smoke_network_unused.run(seen, ports, logins, job())]
    assert all(WHY in each.evidence[0].text for each in found)
    return [(each.hosts, each.severity) for each in found]


def test_a_host_that_falls_back_while_others_do_not() -> None:
    assert unused(IB, SOCKETS, IB) == [(("n2",), None)]
    assert unused(IB, SOCKETS, IB, own=port(layer="Ethernet")) == [(("n2",), None)]


def test_all_hosts_fall_back() -> None:
    """Nobody says that another network would work: a warning, and none for the Ethernet that all have."""
    assert unused(SOCKETS, SOCKETS) == [(("n1", "n2"), Severity.WARN)]
    assert unused(SOCKETS, SOCKETS, own=port(layer="Ethernet")) == []


@pytest.mark.parametrize(
    "login",
    [
        {"NCCL_IB_DISABLE": "1"},
        {"NCCL_NET": "Socket"},
        {"NCCL_IB_HCA": "^mlx5_0"},
        {"NCCL_IB_HCA": "=mlx5_1"},
    ],
)
def test_sockets_that_were_asked_for(login: dict[str, str]) -> None:
    assert unused(SOCKETS, SOCKETS, login=login) == []


@pytest.mark.parametrize("told", [(IB, IB), (PLAIN, IB), (CLOUD, CLOUD), ((*SOCKETS, *IB), IB)])
def test_hosts_that_take_a_network_of_their_own(told: tuple[tuple[str, ...], ...]) -> None:
    assert unused(*told) == []


@pytest.mark.parametrize("own", [port("down"), port("initializing")])
def test_no_port_is_up(own: InfinibandPort) -> None:
    assert unused(SOCKETS, SOCKETS, own=own) == []


def test_a_run_of_which_nothing_was_heard() -> None:
    for told in ((), MUTE):
        with pytest.raises(Skip, match="did not say"):
            unused(told, told)
        with pytest.raises(Skip, match="did not say"):
            gpudirect(told, told)


def gpudirect(*told: tuple[str, ...], **more: Any) -> list[tuple[str, ...]]:
    return [each.hosts for each in smoke_gpudirect_off.run(rounds(*told, **more))]


def test_one_host_sends_through_its_memory() -> None:
    assert gpudirect(IB, PLAIN, IB) == [("n2",)]
    (found,) = smoke_gpudirect_off.run(rounds(IB, PLAIN))
    assert found.actual == "NET/IB/0, NET/IB/1"
    assert found.evidence[0].text == PLAIN[2]


@pytest.mark.parametrize(
    "told",
    [
        (IB, IB),
        (PLAIN, PLAIN),
        (SOCKETS, IB),
        (CLOUD, CLOUD),
        (IB, (*IB, "via NET/IB/1")),
        (IB, MUTE),
    ],
)
def test_hosts_that_are_alike_or_send_otherwise(told: tuple[tuple[str, ...], ...]) -> None:
    assert gpudirect(*told) == []


def test_other_gpus_are_not_compared() -> None:
    assert gpudirect(IB, PLAIN, products=("NVIDIA H100", "NVIDIA T4")) == []
