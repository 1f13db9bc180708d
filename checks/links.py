"""The wires below the job's network interface: bonds that lost a link, half duplex, links that flap."""

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from shlex import quote
from statistics import median_low

from doctor.api import (
    HERE,
    PLAN,
    Capture,
    Damage,
    Evidence,
    Fact,
    Here,
    JobPlan,
    Place,
    Problem,
    Read,
    Scope,
    Severity,
    Skip,
    Sphere,
    Undecided,
    check,
    files,
    maybe,
)
from doctor.facts.network import ADDRESSES

HOUR, A_DAY = 3600, 24
OFTEN = 10
"""A link that was lost less often is not named: cables are pulled, and switches are restarted."""
FAR_ABOVE = 10
ENOUGH = 2
"""The number of other hosts that must be known."""
_NET = "/sys/class/net/"
_FILE = re.compile(rf"{_NET}([^/]{{1,15}})/(duplex|carrier_changes|bonding/mode|bonding/ad_aggregator)")
_OWN = "mii_status|ad_aggregator_id"
_MEMBER = re.compile(rf"{_NET}([^/]{{1,15}})/slave_([^/]{{1,15}})/bonding_slave/({_OWN})")


@dataclass(frozen=True, slots=True)
class Wires:
    """`duplex` and `changes` of each interface, as far as they are known; `bonds`: of each bond the members
    that carry nothing, and why: "eth1" -> "down". `hours` since the start of the host, 0 if unknown.
    """

    duplex: Mapping[str, str]
    changes: Mapping[str, int]
    bonds: Mapping[str, Mapping[str, str]]
    hours: int


def _wires(capture: Capture) -> Wires:
    found = {path: text.strip()[:20] for path, text in files(capture).items()}
    said: defaultdict[str, dict[str, str]] = defaultdict(dict)
    members: defaultdict[str, defaultdict[str, dict[str, str]]] = defaultdict(lambda: defaultdict(dict))
    for path, text in found.items():
        if name := _FILE.fullmatch(path):
            said[name[2]][name[1]] = text
        elif name := _MEMBER.fullmatch(path):
            members[name[1]][name[2]][name[3]] = text
    up = re.match(r"\d{1,12}(?:\.\d{1,6})?(?= )", found.get("/proc/uptime", ""))
    return Wires(
        said["duplex"],
        {link: int(text) for link, text in said["carrier_changes"].items() if re.fullmatch(r"\d{1,9}", text)},
        {
            bond: _lost(mode, said["bonding/ad_aggregator"].get(bond, ""), members[bond])
            for bond, mode in said["bonding/mode"].items()
        },
        int(float(up[0])) // HOUR if up else 0,
    )


def _lost(mode: str, active: str, members: Mapping[str, Mapping[str, str]]) -> Mapping[str, str]:
    """The members of a bond that carry nothing. With LACP, those that the switch joined share a number."""
    lost = {}
    for name, own in members.items():
        status, joined = own.get("mii_status", "up"), own.get("ad_aggregator_id")
        if status != "up":
            lost[name] = status
        elif mode.startswith("802.3ad") and joined and joined != active:
            lost[name] = "up, but the switch has not joined it to the others (LACP)"
    return lost


WIRES = Fact(
    "wires",
    Read(
        (
            *(f"{_NET}*/{name}" for name in ("duplex", "carrier_changes")),
            *(f"{_NET}*/bonding/{name}" for name in ("mode", "ad_aggregator")),
            *(f"{_NET}*/slave_*/bonding_slave/{name}" for name in ("mii_status", "ad_aggregator_id")),
            "/proc/uptime",
        )
    ),
    _wires,
)


def _interface(held: Mapping[str, tuple[str, ...]], plan: JobPlan, host: str) -> str:
    """The interface that carries the job."""
    data = plan.data_address(host)
    found = next((name for name, addresses in held.items() if data in addresses), None)
    if found is None:
        raise Undecided("the job's interface is not known")
    return found


@check(
    "link-bond-broken",
    maybe(WIRES),
    ADDRESSES,
    PLAN,
    HERE,
    damage=Damage.LOAD,
    severity=Severity.WARN,
    sphere=Sphere.NETWORK,
)
def link_bond_broken(
    wires: Wires | None, addresses: Mapping[str, tuple[str, ...]], plan: JobPlan, here: Here
) -> Iterator[Problem]:
    """A link of the bond that carries the job is down, or the switch has not joined it to the others.

    Why it matters: the bond stays up and its speed looks right, but what it carries is half as fast, and all
    ranks wait for this host in each collective. If the last link fails, the host is lost.

    How it is known: the kernel says the state of each link (/sys/class/net/*/bonding_slave), and with LACP
    (802.3ad) which of them the switch has joined: those with the number of the active aggregator.

    What to do: check the cable, the transceiver and the switch port of the named link; with LACP, whether
    both ports of the switch are members of one port channel.
    """
    carrier = _interface(addresses, plan, here.name).partition(".")[0]
    if wires is None or carrier not in wires.bonds:
        raise Skip("the job's interface is not a bond")
    for member, state in wires.bonds[carrier].items():
        yield Problem(
            f"a link of {carrier} carries nothing",
            expected="up, and joined to the others",
            actual=state,
            subject=f"interface {member}",
            evidence=(Evidence(f"{_NET}{carrier}/slave_{member}/bonding_slave", state),),
            commands=(f"cat /proc/net/bonding/{quote(carrier)}", f"ethtool {quote(member)}"),
        )


@check(
    "link-half-duplex",
    maybe(WIRES),
    ADDRESSES,
    PLAN,
    HERE,
    damage=Damage.LOAD,
    severity=Severity.WARN,
    sphere=Sphere.NETWORK,
)
def link_half_duplex(
    wires: Wires | None, addresses: Mapping[str, tuple[str, ...]], plan: JobPlan, here: Here
) -> Iterator[Problem]:
    """The job's network interface cannot send while it receives.

    Why it matters: ranks send and receive at once in every collective: packets collide, and the link carries
    a fraction of its speed.

    What to do: let the interface and the switch port negotiate the speed (`ethtool -s IF autoneg on`), and
    set both ends alike.
    """
    interface = _interface(addresses, plan, here.name)
    if wires is None or interface not in wires.duplex:
        raise Skip("nothing was read of the job's interface")
    if wires.duplex[interface] == "half":
        path = f"{_NET}{interface}/duplex"
        yield Problem(
            f"{interface} runs at half duplex",
            expected="full",
            actual="half",
            subject=f"interface {interface}",
            evidence=(Evidence(path, "half"),),
            commands=(f"ethtool {quote(interface)}",),
        )


@check(
    "link-flapping",
    maybe(WIRES),
    ADDRESSES,
    PLAN,
    damage=Damage.LOAD,
    scope=Scope.CLUSTER,
    severity=Severity.WARN,
    sphere=Sphere.NETWORK,
    several_hosts=True,
)
def link_flapping(
    wires: Mapping[str, Wires], addresses: Mapping[str, Mapping[str, tuple[str, ...]]], plan: JobPlan
) -> Iterator[Problem]:
    """The link of a host was lost far more often than those of the other hosts.

    Why it matters: a link that is lost for a second stalls all ranks for several, and ends a job that runs
    over RDMA.

    How it is known: the kernel counts since the start of the host how often the carrier came and went
    (carrier_changes). A link is named if it was lost at least ten times, at least once a day, and ten times
    as often as the links of the other hosts in the same time. What all hosts show alike is the switch, and
    names nobody.

    What to do: change the cable or the transceiver, then the port of the switch; look at the switch's log.
    """
    rates: dict[str, tuple[str, int, float]] = {}
    for host, own in wires.items():
        data = plan.data_address(host)
        link = next((name for name, held in addresses.get(host, {}).items() if data in held), "")
        if link in own.changes and own.hours:
            lost = own.changes[link] // 2
            rates[host] = link, lost, lost / max(own.hours / A_DAY, 1)
    if len(rates) <= ENOUGH:
        raise Skip("the links of fewer than three hosts are known")
    often = {host: each for host, each in rates.items() if each[1] >= OFTEN and each[2] >= 1}
    for host, (link, lost, rate) in often.items():
        usual = median_low(other for name, (_, _, other) in rates.items() if name != host)
        if rate >= FAR_ABOVE * usual:
            path = f"{_NET}{link}/carrier_changes"
            yield Problem(
                f"{link} loses its link again and again",
                expected=f"{usual:.1f} times a day, as on the other hosts",
                actual=f"{lost} times, {rate:.1f} a day",
                hosts=(host,),
                where=(Place(host=host),),
                subject=f"interface {link}",
                evidence=(Evidence(path, str(wires[host].changes[link])),),
                commands=(
                    f"ethtool -m {quote(link)}    # its transceiver",
                    f"dmesg -T | grep -w {quote(link)}",
                ),
            )
