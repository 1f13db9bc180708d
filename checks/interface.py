"""The interface that the ranks' library takes by itself: whether the other hosts reach its address."""

import ipaddress
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from shlex import quote

from doctor.api import (
    PLAN,
    Backend,
    Confidence,
    Damage,
    Evidence,
    JobPlan,
    Place,
    Problem,
    Scope,
    Severity,
    Skip,
    Sphere,
    Undecided,
    check,
    fold,
    grouped,
    is_loopback,
    maybe,
)
from doctor.facts.network import ADDRESSES, LINKS, NAMES, Counters, ResolvedNames
from doctor.facts.run import MESH, OFFERED
from doctor.facts.software import ENVIRONMENT, Environment
from doctor.job.plan import LIBRARIES, Offer, is_untold
from doctor.mesh import Link, MeshResult
from doctor.rules.offers import offers_of

SHOWN = 6


@check(
    "interface-wrong",
    NAMES,
    ADDRESSES,
    maybe(MESH),
    maybe(OFFERED),
    maybe(ENVIRONMENT),
    maybe(LINKS),
    PLAN,
    scope=Scope.CLUSTER,
    several_hosts=True,
    causes=("hostname-duplicate", "host-named-twice"),
    sphere=Sphere.NETWORK,
    damage=Damage.BLOCKED,
)
def interface_wrong(
    names: Mapping[str, ResolvedNames],
    addresses: Mapping[str, Mapping[str, tuple[str, ...]]],
    mesh: MeshResult | None,
    tried: MeshResult | None,
    logins: Mapping[str, Environment],
    links: Mapping[str, Mapping[str, Counters]],
    plan: JobPlan,
) -> Iterator[Problem]:
    """The ranks' library would take an interface that the other hosts do not reach.

    Why it matters: the hosts reach each other, but ranks offer the address that their library chooses. gloo
    takes what the host's own name resolves to, NCCL and HCCL the first interface in an order of their own. If
    that is the bridge of Docker or a network of this host alone, the job hangs or dies when it connects.

    How it is known: each library's rules are followed with the variables of the launch and of the login, and
    the other hosts connect to the address that results. Those of NCCL and HCCL are emulated: the library was
    not asked. Of two ranks of gloo, the one with the higher address connects to the other: an address that no
    rank would connect to is a warning.

    What to do: name the right interface in the launch (GLOO_SOCKET_IFNAME, NCCL_SOCKET_IFNAME,
    HCCL_SOCKET_IFNAME), or give the host's own name the right address in /etc/hosts.
    """
    if plan.carrier.value == "mccl":
        raise Skip("MindSpore's ranks on CPUs use the address from which they reach the scheduler")
    variable = LIBRARIES[plan.backend.value].variable
    if is_untold(plan.env.get(variable, "")):
        raise Undecided(f"the launch sets {variable} to something that only the hosts know")
    offers = offers_of(plan, names, addresses, logins, links)
    seen = _Connections(plan, offers, mesh, tried)
    doubtful = []
    for host in filter(offers.__contains__, plan.names):
        offered = offers[host]
        is_data = offered.address == plan.data_address(host) and not _is_of_link(offered)
        if is_data or _is_told_elsewhere(offered, plan):
            continue
        failed = seen.unreached(host)
        if failed or seen.sharers(host) or seen.strangers(host) or is_loopback(offered.address):
            yield _problem(host, seen, failed, addresses[host])
        elif not seen.reached(host):
            doubtful.append(host)
    if doubtful:
        raise Undecided(f"whether others reach what it would offer, {offers[doubtful[0]]}", tuple(doubtful))


def _is_told_elsewhere(offered: Offer, plan: JobPlan) -> bool:
    """Whether hostname-loopback is about it."""
    return plan.backend.value is Backend.GLOO and is_loopback(offered.address) and "=" not in offered.why


def _is_of_link(offer: Offer) -> bool:
    return offer.address.startswith("fe80:")


@dataclass(frozen=True)
class _Connections:
    """`mesh` are connections to data addresses, `tried` to offers that are other addresses."""

    plan: JobPlan
    offers: Mapping[str, Offer]
    mesh: MeshResult | None
    tried: MeshResult | None

    @cached_property
    def by_address(self) -> Mapping[str, Sequence[str]]:
        return _grouped(self.plan, {host: offer.address for host, offer in self.offers.items()})

    @cached_property
    def by_version(self) -> Mapping[str, Sequence[str]]:
        routed = {host: offer for host, offer in self.offers.items() if not _is_of_link(offer)}
        return _grouped(
            self.plan, {host: "v6" if ":" in each.address else "v4" for host, each in routed.items()}
        )

    def sharers(self, host: str) -> tuple[str, ...]:
        """Other hosts that offer the same address."""
        given = self.plan.host(host).given
        same = self.by_address[self.offers[host].address]
        return tuple(name for name in same if self.plan.host(name).given != given)

    def strangers(self, host: str) -> Sequence[str]:
        """The hosts with another version of IP, if they are the minority: gloo does not connect the two."""
        if self.plan.backend.value is not Backend.GLOO:
            return ()
        others = next((hosts for hosts in self.by_version.values() if host not in hosts), ())
        return others if 2 * len(others) >= len(self.offers) else ()

    def reached(self, host: str) -> bool:
        return bool(self.tried and self.tried.into.get(host))

    def unreached(self, host: str) -> list[Link]:
        """The failed connections of hosts that reach its data address."""
        data = self.mesh.into.get(host, ()) if self.mesh else ()
        cut_off = {link.source for link in data if link.failed}
        tried = self.tried.into.get(host, ()) if self.tried else ()
        return [link for link in tried if link.failed and link.source not in cut_off]

    def is_dialled(self, host: str, by: Sequence[str]) -> bool:
        """Whether one of these hosts would connect to it rather than wait for it."""
        if self.plan.backend.value is not Backend.GLOO:
            return True
        own = ipaddress.ip_address(self.offers[host].address)
        others = [ipaddress.ip_address(self.offers[peer].address) for peer in by if peer in self.offers]
        return any(own.version != other.version or own.packed <= other.packed for other in others)


def _grouped(plan: JobPlan, keys: Mapping[str, str]) -> Mapping[str, Sequence[str]]:
    return grouped((keys[host], host) for host in plan.names if host in keys)


def _problem(
    host: str, seen: _Connections, failed: Sequence[Link], held: Mapping[str, tuple[str, ...]]
) -> Problem:
    plan, offered = seen.plan, seen.offers[host]
    library, sharers, strangers = LIBRARIES[plan.backend.value], seen.sharers(host), seen.strangers(host)
    peers = [*sharers, *strangers, *(link.source for link in failed)]
    peers = peers or [name for name in plan.names if name != host]
    right = next((name for name, own in held.items() if plan.data_address(host) in own), "")
    right = "" if right == offered.interface else right
    evidence = [Evidence(f"connect from {link.source}", f"{link.address}: {link.outcome}") for link in failed]
    if strangers:
        theirs = f"{seen.offers[strangers[0]].address}: gloo does not connect IPv4 addresses to IPv6 ones"
        evidence.insert(0, Evidence(f"the offer of {strangers[0]}", theirs))
    if sharers:
        evidence.insert(0, Evidence("the same address", f"{offered.address} on {fold((host, *sharers))}"))
    chosen = f"{offered.why}; emulated, {library.name} was not asked" if library.emulated else offered.why
    return Problem(
        f"{library.name} would offer an address that the other hosts do not reach",
        expected=f"the address of {right}, which they reach" if right else "an address that they reach",
        actual=f"{offered.address}{f' on {offered.interface}' if offered.interface else ''} ({chosen})",
        hosts=(host,),
        subject=f"interface {offered.interface}" if offered.interface else f"address {offered.address}",
        where=tuple(Place(host=host, peer=peer) for peer in dict.fromkeys(peers[:64])),
        severity=None if seen.is_dialled(host, peers) else Severity.WARN,
        confidence=Confidence.STRONG if library.emulated else Confidence.CERTAIN,
        evidence=(*evidence[:SHOWN],),
        commands=_name_it(plan, offered, right),
    )


def _name_it(plan: JobPlan, offered: Offer, right: str) -> tuple[str, ...]:
    """`right` is the interface whose address the others reach; empty if it is not known."""
    variable = LIBRARIES[plan.backend.value].variable
    if not right:
        return (f"export {variable}=INTERFACE    # the one whose address the others reach: ip -br addr",)
    export = f"export {variable}={quote(right)}    # in the job's script; try it with --launch SCRIPT"
    if "own name" not in offered.why or ":" in offered.address:
        return (export,)
    own = f'$(ip -4 -o addr show dev {quote(right)} | awk \'{{sub("/.*", "", $4); print $4; exit}}\')'
    line = f"^{offered.address}([[:space:]](.*[[:space:]])?$(uname -n)([[:space:]].*)?)$"
    return (
        export,
        "# Or for every job on the host:",
        f'sudo sed -i -E "s/{line}/{own}\\1/" /etc/hosts; getent ahosts "$(uname -n)"',
    )
