"""InfiniBand and RoCE ports between the hosts: whether a port is up, and as fast, as on the other hosts."""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass

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
    check,
    fold,
    maybe,
)
from doctor.facts.gpus import Gpus
from doctor.facts.infiniband import IB_PORTS, InfinibandPort
from doctor.facts.nvidia.gpus import GPUS

HCA = "NCCL_IB_HCA"
NEARLY_ALL = 0.9
SHOWN = 8
Key = tuple[str, int, str]


@dataclass(frozen=True, slots=True)
class PeerPorts:
    """The ports of the other hosts: on how many hosts each exists and is up, and which are the fabric's."""

    hosts: int
    have: Counter[Key]
    up: Counter[Key]
    fabric: Set[Key]

    def agree(self, key: Key, of: int) -> bool:
        """Whether at least two hosts and nearly all of `of` have this port of the fabric up."""
        return key in self.fabric and 1 < self.up[key] >= NEARLY_ALL * of


@check(
    "ib-port-down",
    IB_PORTS,
    PLAN,
    damage=Damage.GONE,
    scope=Scope.CLUSTER,
    remedy="look-at-ib-port",
    backends=(Backend.NCCL,),
    several_hosts=True,
)
def ib_port_down(ports: Mapping[str, Sequence[InfinibandPort]], plan: JobPlan) -> Iterator[Problem]:
    """An InfiniBand or RoCE port is down on a host where the other hosts have it up.

    Why it matters: NCCL gives each GPU its own port. With one down, that host communicates through fewer
    ports than the others, over another rail, or through TCP: the job does not start, or all its steps are
    slow.

    How it is known: the same port (mlx5_0 port 1) on the other hosts. A port that is down everywhere counts
    as not in use, unless NCCL_IB_HCA names it. It is only a warning if a single other host has the port up,
    if a host has fewer ports than it lacks, and for Ethernet next to InfiniBand or faster Ethernet, which may
    belong to storage or management.

    What to do: a port that is polling or disabled has no partner: check the cable, the transceiver and the
    port of the switch. A port that is initializing has a link, but no subnet manager has set it up: check
    whether opensm, or the one of the switch, runs. NCCL_IB_HCA names the ports that the job is to use.
    """
    if plan.env.get("NCCL_IB_DISABLE", "0").strip() not in ("", "0"):
        raise Skip("NCCL_IB_DISABLE is set")
    wish = plan.env.get(HCA, "").strip()
    meant = bool(wish) and not wish.startswith("^")
    used = {host: [port for port in own if _is_used(port, wish)] for host, own in ports.items()}
    active = [port for own in used.values() for port in own if port.is_up]
    fabric = {_key(port) for port in (active if meant else _of_fabric(active))}
    most = max(map(len, used.values()), default=0)
    have, up = _hosts_by_port(port for own in used.values() for port in own), _hosts_by_port(active)
    for host, own in used.items():
        peers = PeerPorts(
            len(used) - 1,
            have - _hosts_by_port(own),
            up - _hosts_by_port(port for port in own if port.is_up),
            fabric,
        )
        for port in own:
            if not port.is_up:
                yield from _down(host, port, peers, wish if meant else "")
        if len(own) < most:
            yield from _gone(host, {_key(port) for port in ports[host]}, peers, named=meant and not own)


@check(
    "ib-port-slow",
    IB_PORTS,
    maybe(GPUS),
    PLAN,
    damage=Damage.LOAD,
    scope=Scope.CLUSTER,
    remedy="look-at-ib-rate",
    backends=(Backend.NCCL,),
    several_hosts=True,
)
def ib_port_slow(
    ports: Mapping[str, Sequence[InfinibandPort]], gpus: Mapping[str, Gpus], plan: JobPlan
) -> Iterator[Problem]:
    """An InfiniBand or RoCE port runs at a lower rate than the same port of the other hosts.

    Why it matters: a collective is as fast as its slowest link, so one port at a quarter of its rate makes
    every step of the whole job wait.

    How it is known: the same port (mlx5_0 port 1) on the other hosts with the same GPUs, nearly all of which
    run it faster. It is only a warning if a single other host does, or if the GPUs are not known. A port with
    one lane left of several (1X) is a fault in any case. Ethernet next to InfiniBand does not count.

    What to do: a port with too few lanes has a bad cable or transceiver: reseat it, then replace it. A port
    with all lanes at a slower speed was set so, on the card or on the switch, or its transceiver allows no
    more.
    """
    if plan.env.get("NCCL_IB_DISABLE", "0").strip() not in ("", "0"):
        raise Skip("NCCL_IB_DISABLE is set")
    wish = plan.env.get(HCA, "").strip()
    alike: defaultdict[tuple[str, ...], dict[str, Sequence[InfinibandPort]]] = defaultdict(dict)
    for host, own in ports.items():
        products = tuple(sorted({gpu.name for gpu in gpus[host].listed})) if host in gpus else ()
        alike[products][host] = [port for port in own if port.is_up and _is_used(port, wish)]
    for products, hosts in alike.items():
        fabric = {_key(port) for port in _of_fabric([port for own in hosts.values() for port in own])}
        rates = {host: sorted(port.rate for port in own) for host, own in hosts.items()}
        for host, own in hosts.items():
            others = [rates[other] for other in hosts if other != host]
            if 2 * others.count(rates[host]) > len(others):
                continue  # the same ports, perhaps under other numbers
            for port in own:
                peers = [
                    each
                    for other, theirs in hosts.items()
                    for each in theirs
                    if other != host and _key(each) == _key(port) in fabric
                ]
                yield from _slow(host, port, peers, known=bool(products))


def _slow(
    host: str, port: InfinibandPort, peers: Sequence[InfinibandPort], *, known: bool
) -> Iterator[Problem]:
    faster = [each for each in peers if _speed(each) > _speed(port)]
    if not _speed(port) or not faster or len(faster) < NEARLY_ALL * len(peers):
        return
    usual, count = Counter(each.rate for each in faster).most_common(1)[0]
    lanes, of = _lanes(port.rate), _lanes(usual)
    sure = (known and count > 1) or lanes == 1 < of
    yield Problem(
        f"{_article(port.layer)} port runs with {lanes} of {of} lanes"
        if 0 < lanes < of
        else f"{_article(port.layer)} port runs at a lower rate",
        expected=f"{usual}, {_others(count)}",
        actual=port.rate,
        subject=port.name,
        hosts=(host,),
        where=(Place(host=host),),
        severity=None if sure else Severity.WARN,
        confidence=Confidence.STRONG if sure else Confidence.SUSPECT,
        evidence=(Evidence(f"/sys/class/infiniband/{port.device}/ports/{port.number}/rate", port.rate),),
        values={"device": port.device},
    )


def _lanes(rate: str) -> int:
    """How many lanes a rate names; 0 if it names none, as in the output of ibstat."""
    number = re.search(r"\((\d{1,2})X ", rate)
    return int(number[1]) if number else 0


def _hosts_by_port(ports: Iterable[InfinibandPort]) -> Counter[Key]:
    return Counter(map(_key, ports))


def _of_fabric(active: Sequence[InfinibandPort]) -> list[InfinibandPort]:
    """Ports that certainly connect the hosts; Ethernet counts only without others, and only the fastest."""
    other = [port for port in active if port.layer.lower() != "ethernet"]
    fastest = max(map(_speed, active), default=0)
    return other or [port for port in active if _speed(port) == fastest]


def _speed(port: InfinibandPort) -> int:
    number = re.match(r"\d{1,6}", port.rate)
    return int(number[0]) if number else 0


def _key(port: InfinibandPort) -> Key:
    """Ports are compared by name and kind, since the numbering may differ from host to host."""
    return port.device, port.number, port.layer


def _is_used(port: InfinibandPort, wish: str) -> bool:
    """Whether NCCL may use it: NCCL_IB_HCA lists prefixes, after `=` exact names, after `^` excluded ones."""
    plain = wish.removeprefix("^").removeprefix("=")
    exact = wish.removeprefix("^").startswith("=")
    words = [word.strip() for word in plain.split(",") if word.strip()]
    return not words or any(_fits(port, word, exact) for word in words) != wish.startswith("^")


def _fits(port: InfinibandPort, word: str, exact: bool) -> bool:
    name, _, number = word.partition(":")
    named = port.device == name if exact else port.device.startswith(name)
    return named and (not number or number == str(port.number))


def _down(host: str, port: InfinibandPort, peers: PeerPorts, wish: str) -> Iterator[Problem]:
    key, up = _key(port), peers.up[_key(port)]
    unmanaged = port.state == "initializing" and port.layer.lower() != "ethernet"
    if not (up or wish or unmanaged):
        return
    sure = wish or peers.agree(key, peers.have[key])
    yield Problem(
        "no subnet manager has set up an InfiniBand port"
        if unmanaged
        else f"{_article(port.layer)} port is down",
        expected=f"active, {_others(up)}" if up else f"active, for {HCA}={wish}" if wish else "active",
        actual=", ".join(word for word in (port.state, port.physical) if word),
        subject=port.name,
        hosts=(host,),
        where=(Place(host=host),),
        severity=None if sure else Severity.WARN,
        confidence=Confidence.STRONG if sure else Confidence.SUSPECT,
        evidence=(
            Evidence(
                f"/sys/class/infiniband/{port.device}/ports/{port.number}",
                ", ".join(word for word in (port.state, port.physical, port.rate, port.layer) if word),
            ),
        ),
        values={"device": port.device},
    )


def _gone(host: str, own: Set[Key], peers: PeerPorts, *, named: bool) -> Iterator[Problem]:
    """Missing ports that nearly all other hosts have up; `named`: the job names ports and the host has none.

    Hosts that share less than half of their ports are probably of different kinds; without a common port they
    certainly are.
    """
    lost = [key for key, up in peers.up.items() if key not in own and up >= NEARLY_ALL * peers.hosts]
    shared = len(own & peers.have.keys())
    if not (shared or named):
        return
    by_layer: defaultdict[str, list[Key]] = defaultdict(list)
    for key in lost:
        by_layer[key[2]].append(key)
    for layer, keys in by_layer.items():
        sure = (shared >= len(lost) or named) and any(peers.agree(key, peers.hosts) for key in keys)
        yield _absent(host, layer, keys, min(peers.up[key] for key in keys), sure=sure)


def _absent(host: str, layer: str, keys: Sequence[Key], up: int, *, sure: bool) -> Problem:
    devices: defaultdict[int, list[str]] = defaultdict(list)
    for device, number, _ in keys:
        devices[number].append(device)
    return Problem(
        f"{_kind(layer)} ports are not there" if len(keys) > 1 else f"{_article(layer)} port is not there",
        expected=f"active, {_others(up)}",
        actual="no such port",
        subject=", ".join(f"{fold(names)} port {number}" for number, names in sorted(devices.items())),
        hosts=(host,),
        where=(Place(host=host),),
        severity=None if sure else Severity.WARN,
        confidence=Confidence.STRONG if sure else Confidence.SUSPECT,
        evidence=tuple(
            Evidence("/sys/class/infiniband", f"no {device}/ports/{number}")
            for device, number, _ in keys[:SHOWN]
        ),
        values={"device": keys[0][0]},
    )


def _others(count: int) -> str:
    return f"as on {count} other host{'s' if count > 1 else ''} of the job"


def _kind(layer: str) -> str:
    return "RoCE" if layer.lower() == "ethernet" else "InfiniBand"


def _article(layer: str) -> str:
    return f"{'a' if layer.lower() == 'ethernet' else 'an'} {_kind(layer)}"
