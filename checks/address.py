"""Data addresses: whether ranks of one host can be distinguished from those of another."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from doctor.api import (
    GUESSES,
    PLAN,
    Damage,
    Evidence,
    JobPlan,
    Place,
    Problem,
    Scope,
    Severity,
    check,
    fold,
    is_loopback,
    maybe,
)
from doctor.facts.network import ADDRESSES
from doctor.facts.system import IDENTITY, MACHINE, Machine
from doctor.rules.machines import named_twice


@check(
    "data-address-duplicate",
    ADDRESSES,
    PLAN,
    maybe(IDENTITY),
    maybe(MACHINE),
    damage=Damage.BLOCKED,
    scope=Scope.CLUSTER,
    several_hosts=True,
    remedy="say-data-address",
)
def data_address_duplicate(
    addresses: Mapping[str, Mapping[str, tuple[str, ...]]],
    plan: JobPlan,
    identities: Mapping[str, str],
    machines: Mapping[str, Machine],
) -> Iterator[Problem]:
    """Hosts of the job have the same data address.

    Why it matters: ranks connect to each other by these addresses. Containers on the bridge network of each
    host, and virtual machines behind NAT, all have the same one: a rank that connects to another reaches
    itself, or no process at all, and the job hangs at start.

    How it is known: each host lists its interfaces. If a host has other addresses too and nothing names the
    one that ranks use, this is a warning.

    What to do: start containers with --network=host or on a network that spans the hosts; on hosts with
    several networks name the one that ranks use (data: in the inventory, or GLOO_SOCKET_IFNAME).
    """
    surplus = named_twice(identities, machines, addresses)
    sharers: dict[str, list[str]] = {}
    for host in plan.hosts:
        if host.data is not None and host.name in addresses and host.name not in surplus:
            sharers.setdefault(host.data.value, []).append(host.name)
    for address, hosts in sharers.items():
        if (
            len({plan.host(host).given for host in hosts}) < 2
        ):  # one host, or containers that share the network of their host
            continue
        guessed = any(_chosen(plan, host, address, addresses) for host in hosts)
        yield Problem(
            f"{len(hosts)} hosts have the same data address",
            expected="an address of its own for each host",
            actual=f"{address} on {fold(hosts)}",
            subject=f"address {address}",
            hosts=tuple(hosts),
            where=tuple(Place(host=host) for host in hosts),
            severity=Severity.WARN if guessed else None,
            evidence=tuple(Evidence("ip -o addr show", f"{host}: {address}") for host in hosts[:8]),
        )


def _chosen(
    plan: JobPlan, host: str, address: str, addresses: Mapping[str, Mapping[str, tuple[str, ...]]]
) -> bool:
    """Whether the address was chosen from several without any setting."""
    data = plan.host(host).data
    others = {
        each
        for held in addresses[host].values()
        for each in held
        if each != address and not is_loopback(each)
    }
    usable = {each for each in others if not each.lower().startswith("fe80:")}
    return data is not None and data.source in GUESSES and bool(usable)
