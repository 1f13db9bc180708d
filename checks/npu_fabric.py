"""NPU to NPU over the fabric: whether the devices that must talk to each other can."""

from collections.abc import Iterator, Mapping, Sequence
from shlex import quote
from typing import Literal

from doctor.api import (
    UNDECIDED,
    Backend,
    Confidence,
    Damage,
    Evidence,
    Place,
    Problem,
    Scope,
    Severity,
    Undecided,
    check,
    fold,
    maybe,
)
from doctor.facts.ascend.hccn_tool import PerDevice, devices
from doctor.facts.ascend.network import NPU_ADDRESSES, NPU_LINKS, Address
from doctor.facts.ascend.npus import NPUS, Npu
from doctor.facts.ascend.pings import NPU_PINGS, Ping, Rail, rails
from doctor.mesh import Link

Addresses = Mapping[str, PerDevice[Address | None]]


@check(
    "device-unreachable",
    NPU_PINGS,
    NPU_ADDRESSES,
    maybe(NPU_LINKS),
    maybe(NPUS),
    damage=Damage.BLOCKED,
    scope=Scope.CLUSTER,
    causes=(
        "device-link-down",
        "device-ip-not-applied",
        "device-ip-duplicate",
        "device-ip-subnet",
        "device-netmask-mismatch",
        "device-gateway-missing",
        "device-net-unhealthy",
    ),
    backends=(Backend.HCCL,),
    several_hosts=True,
)
def device_unreachable(
    pings: Mapping[str, Sequence[Ping]],
    addresses: Addresses,
    links: Mapping[str, PerDevice[bool]],
    _busy: Mapping[str, Sequence[Npu]],
) -> Iterator[Problem]:
    """NPUs of different hosts cannot reach each other over the fabric.

    Why it matters: HCCL connects device i of every host to device i of the others. A device that is cut off
    makes every rank wait for it until HCCL_CONNECT_TIMEOUT (EI0006), and the error names two ranks instead of
    the right one.

    How it is known: device i of each host pings device i of the others with hccn_tool, in both directions;
    with more than 8 hosts, of some others (--mesh full: of all). The fewest devices that explain all failures
    are named. Busy NPUs are not pinged (unless --on-busy run is given).

    What to do: check the named device's link, optical module, switch port and VLAN; if a whole rail fails,
    the switch of that rail.
    """
    outcomes: tuple[Literal["lost", "lossy"], ...] = ("lost", "lossy")
    for outcome in outcomes:
        for group in _alike(rails(pings, addresses, outcome)):
            yield _problem(group, outcome, pings, links)
    untested = {
        host: next(p for p in own if p.outcome == "untested") for host, own in pings.items() if _open(own)
    }
    if untested:
        first = next(iter(untested.values()))
        raise Undecided(f"not all of its pings could be made: {first.detail}", tuple(untested))


def _open(own: Sequence[Ping]) -> bool:
    return any(ping.outcome == "untested" for ping in own)


def _alike(found: Sequence[Rail]) -> list[list[Rail]]:
    """Equal problems of several rails, merged, such as all devices of one host, or all switches."""
    groups: dict[object, list[Rail]] = {}
    for rail in found:
        blame = rail.blame
        groups.setdefault((blame.hosts, blame.direction, blame.decided, blame.common), []).append(rail)
    return list(groups.values())


def _problem(
    group: Sequence[Rail],
    outcome: str,
    pings: Mapping[str, Sequence[Ping]],
    links: Mapping[str, PerDevice[bool]],
) -> Problem:
    blame = group[0].blame
    numbers = [rail.device for rail in group]
    failed = [(rail.device, link) for rail in group for link in rail.blame.links]
    tried = sum(p.outcome != "untested" for own in pings.values() for p in own if p.device in numbers)
    return Problem(
        _summary(group, outcome, links) + ("" if blame.decided else UNDECIDED),
        expected="every ping answered, in both directions",
        actual=f"{len(failed)} of {tried} pings between devices of this number "
        + ("were lost" if outcome == "lost" else "lost packets"),
        subject=devices(numbers),
        hosts=blame.hosts,
        where=tuple(
            Place(host=h, device=d, peer=_other(h, blame.hosts)) for h in blame.hosts for d in numbers
        )
        or tuple(Place(host=link.source, device=d, peer=link.target) for d, link in failed[:8]),
        severity=None if outcome == "lost" else Severity.WARN,
        confidence=Confidence.CERTAIN if blame.decided else Confidence.SUSPECT,
        evidence=tuple(
            Evidence(f"{link.source}: {_ping(device, link)}", f"{link.target}: {link.detail or 'no answer'}")
            for device, link in failed[:6]
        ),
        commands=tuple(f"{_ping(device, link)}    # on {link.source}" for device, link in failed[:2]),
    )


def _other(host: str, hosts: Sequence[str]) -> str | None:
    """The other host of a pair: a certain fault there clears this one."""
    return next(other for other in hosts if other != host) if len(hosts) == 2 else None


def _ping(device: int, link: Link) -> str:
    return f"hccn_tool -i {device} -ping -g address {quote(link.address)}"


def _summary(group: Sequence[Rail], outcome: str, links: Mapping[str, PerDevice[bool]]) -> str:
    """ "device 2 cannot be reached from any of node1, node2, although its link is UP"."""
    blame = group[0].blame
    numbers = [rail.device for rail in group]
    what = devices(numbers)
    if blame.common:
        return f"{what}: no host reaches any other's; look at the switch that joins them"
    up = all(links.get(host, {}).get(device) is True for host in blame.hosts for device in numbers)
    though = f", although {'its link is' if len(numbers) == 1 else 'their links are'} UP" if up else ""
    if len(blame.hosts) > 1:
        return f"{fold(blame.hosts)} cannot reach each other's {what}" + (
            ", although the links are UP" if up else ""
        )
    ends = {end for rail in group for link in rail.blame.links for end in (link.source, link.target)}
    others = ", ".join(sorted(ends - set(blame.hosts)))
    if outcome == "lossy":
        return f"pings to and from {what} lose packets{though}"
    return f"{what} cannot be reached from any of {others}{though}"
