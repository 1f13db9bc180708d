"""Data addresses: whether ranks of one host can be distinguished from those of another."""

from collections.abc import Iterator, Mapping

from doctor.api import (
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
    grouped,
    is_loopback,
    maybe,
)
from doctor.facts.network import ADDRESSES
from doctor.facts.run import MESH
from doctor.facts.system import IDENTITY, MACHINE, Machine
from doctor.job.plan.interfaces import VIRTUAL
from doctor.mesh import MeshResult
from doctor.rules.launch_names import remark
from doctor.rules.machines import named_twice
from doctor.rules.ways import is_guessed

ASIDE = (*VIRTUAL, "dummy")
"""Prefixes of the names of interfaces without a connection to other hosts."""


@check(
    "data-address-duplicate",
    ADDRESSES,
    PLAN,
    maybe(IDENTITY),
    maybe(MACHINE),
    maybe(MESH),
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
    mesh: MeshResult | None,
) -> Iterator[Problem]:
    """Hosts of the job have the same data address, or one has that of another beside its own.

    Why it matters: ranks connect to each other by these addresses. Containers on the bridge network of each
    host, and virtual machines behind NAT, all have the same one: a rank that connects to another reaches
    itself, or no process at all, and the job hangs at start.

    How it is known: each host lists its interfaces. If a host has other addresses too and nothing names the
    one that ranks use, this is a warning. So is an address that a host has beside its own, as long as all
    connections succeed; which of the two hosts a packet reaches then changes with every ARP request.

    What to do: start containers with --network=host or on a network that spans the hosts; on hosts with
    several networks name the one that ranks use (data: in the inventory, or GLOO_SOCKET_IFNAME). Remove an
    address that belongs to another host.
    """
    surplus = named_twice(identities, machines, addresses)
    yield from _of_others({n: own for n, own in addresses.items() if n not in surplus}, plan, mesh)
    sharers = grouped(
        (host.data.value, host.name)
        for host in plan.hosts
        if host.data is not None and host.name in addresses and host.name not in surplus
    )
    for address, hosts in sharers.items():
        if (
            len({plan.host(host).given for host in hosts}) < 2
        ):  # one host, or containers that share the network of their host
            continue
        named = {data.source for host in hosts if (data := plan.host(host).data)} & plan.env.keys()
        if named and {*hosts} == {*plan.names}:
            name = named.pop()
            what = "loopback" if is_loopback(address) else f"{address}, which every host has"
            yield Problem(
                f"{name} of the launch names {what}: no rank of another host can connect to it",
                expected="the interface of an address that the other hosts reach",
                actual=f"{name}={plan.env[name]}",
                subject=f"{name}={plan.env[name]}",
                evidence=(Evidence(plan.lines.get(name) or f"{name} of the launch", plan.env[name]),),
                commands=(remark(f"name another interface in {plan.lines.get(name) or 'the launch'}"),),
            )
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
    others = {
        each
        for held in addresses[host].values()
        for each in held
        if each != address and not is_loopback(each)
    }
    usable = {each for each in others if not each.lower().startswith("fe80:")}
    return is_guessed(plan, host) and bool(usable)


def _of_others(
    addresses: Mapping[str, Mapping[str, tuple[str, ...]]], plan: JobPlan, mesh: MeshResult | None
) -> Iterator[Problem]:
    """The hosts that have the address of another one beside their own. A host that did not answer has the
    address at which it was asked.
    """
    unheard = {host.name for host in plan.hosts} - addresses.keys()
    owners: dict[str | None, str] = {plan.host(name).given: name for name in unheard}
    owners.update((plan.data_address(name), name) for name in addresses)
    for host, held in addresses.items():
        own = plan.data_address(host)
        names = (name for name in held if not name.startswith(ASIDE))
        for address, interface in ((each, name) for name in names for each in held[name] if ":" not in name):
            owner = owners.get(address, host)
            if owner == host or own in (None, address) or plan.host(owner).given == plan.host(host).given:
                continue
            failed = mesh is not None and any(link.failed for link in mesh.touching((host, owner)))
            yield Problem(
                "it has the address of another host",
                expected=f"{address} on {owner} alone",
                actual=f"{address} on {interface}, beside {own}",
                subject=f"address {address}",
                hosts=(host,),
                where=(Place(host=host, peer=owner), Place(host=owner)),
                severity=None if failed or owner in unheard else Severity.WARN,
                evidence=(Evidence("ip -o addr show", f"{host}: {address} on {interface}"),),
                commands=(f"# remove {address} from {interface}, and from what configures it at boot",),
            )
