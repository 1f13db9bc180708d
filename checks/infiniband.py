"""InfiniBand and RoCE ports between the hosts: whether a port is up, and as fast, as on the other hosts."""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass

from doctor.api import (
    PLAN,
    Backend,
    Capture,
    Confidence,
    Damage,
    Evidence,
    Fact,
    JobPlan,
    Place,
    Problem,
    Run,
    Scope,
    Severity,
    Skip,
    check,
    fold,
    grouped,
    maybe,
)
from doctor.facts.gpus import Gpus
from doctor.facts.infiniband import IB_PORTS, InfinibandPort
from doctor.facts.network import LINKS, Counters
from doctor.facts.nvidia.gpus import GPUS
from doctor.facts.smoke import SMOKE, SmokeRounds
from doctor.facts.software import ENVIRONMENT, Environment
from doctor.rules.login import environment_of

HCA = "NCCL_IB_HCA"
NEARLY_ALL = 0.9
MOST_OF = 0.75
"""Of the cards of a board."""
RAIL, ENOUGH = 200, 4
"""Gigabits a second that a port of its own for each GPU carries at least, and of how many GPUs."""
_RAILED = re.compile(r"\b(?:[AH][18]00|H200?|G?[BH][23]00)\b")
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


@dataclass(frozen=True, slots=True)
class Gid:
    """An address of a RoCE port: `kind` is "RoCE v2" or "IB/RoCE v1"; `interface` has it."""

    index: int
    address: str
    kind: str
    interface: str

    @property
    def is_routable(self) -> bool:
        """Whether it leads to other networks: an IPv4 address, in RoCE v2."""
        return self.kind == "RoCE v2" and self.address.startswith(f"{'0000:' * 5}ffff:")


@dataclass(frozen=True, slots=True)
class Card:
    """What ranks can do with a card: `closed` to this login; the first addresses of its RoCE ports."""

    closed: bool
    board: str
    firmware: str
    gids: Mapping[int, tuple[Gid, ...]]


_ABOUT = re.compile(r"/\S+?/infiniband/([\w.-]{1,64})(?:/ports/(\d{1,3}))? (gid|made|closed) ?(.{0,160})")
_GID = re.compile(r"(\d{1,3}) (\S{1,16}) ([0-9a-f:]{39}) (\S.{0,20})")


def _cards(capture: Capture) -> Mapping[str, Card]:
    rows = [row for line in capture.stdout.splitlines() if (row := _ABOUT.fullmatch(line))]
    closed = {row[1] for row in rows if row[3] == "closed"}
    made = {row[1]: row[4].split() for row in rows if row[3] == "made"}
    gids: defaultdict[str, defaultdict[int, list[Gid]]] = defaultdict(lambda: defaultdict(list))
    for row in rows:
        if row[3] == "gid" and row[2] and (gid := _GID.fullmatch(row[4])):
            gids[row[1]][int(row[2])].append(Gid(int(gid[1]), gid[3], gid[4], gid[2]))
    found = {}
    for name in {row[1] for row in rows}:
        board, firmware = (*made.get(name, ()), "", "")[:2]
        own = {port: tuple(listed) for port, listed in gids[name].items()}
        found[name] = Card(name in closed, board, firmware, own)
    return found


_LOOK = r"""C=/sys/class/infiniband
set -- "$C"/*/ports/[0-9]*
{ for p; do read -r v <"$p/link_layer"
case $v in Ethernet)
  for i in 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15; do
    read -r v <"$p/gids/$i" || continue
    case $v in *[1-9a-f]*) read -r t <"$p/gid_attrs/types/$i" && read -r n <"$p/gid_attrs/ndevs/$i" &&
      echo "$p gid $i $n $v $t"; esac
  done
esac
done
for d in "$C"/*; do
  read -r f <"$d/fw_ver" && read -r b <"$d/board_id" && echo "$d made $b $f"
done
for u in "${C}_verbs"/uverbs*; do
  read -r d <"$u/ibdev" || continue
  [ -r "/dev/infiniband/${u##*/}" ] && [ -w "/dev/infiniband/${u##*/}" ] || echo "$C/$d closed"
done; } 2>/dev/null
:
"""
IB_CARDS = Fact("ib-cards", Run(_LOOK), _cards, timeout=8, cap=65536, group=IB_PORTS.group)
"""By the name of the device."""


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
    if _is_off(plan, None):
        raise Skip("NCCL_IB_DISABLE or NCCL_NET=Socket is set")
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
    one lane left of several (1X) is a fault in any case. Ethernet next to InfiniBand does not count. If all
    hosts are alike, and have an InfiniBand port for each A100 or later, less than 200 Gb/s is a warning.

    What to do: a port with too few lanes has a bad cable or transceiver: reseat it, then replace it. A port
    with all lanes at a slower speed was set so, on the card or on the switch, or its transceiver allows no
    more.
    """
    if _is_off(plan, None):
        raise Skip("NCCL_IB_DISABLE or NCCL_NET=Socket is set")
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
        if len(products) == 1 and (name := _RAILED.search(products[0])):
            yield from _all_slow(hosts, gpus, name[0])


def _all_slow(
    ports: Mapping[str, Sequence[InfinibandPort]], gpus: Mapping[str, Gpus], product: str
) -> Iterator[Problem]:
    """Hosts with a port for each GPU, all of which are slower than any such machine is built."""
    slow: defaultdict[str, list[str]] = defaultdict(list)
    for host, own in ports.items():
        rails = [port for port in own if port.layer.lower() == "infiniband"]
        rates = {port.rate for port in rails}
        if len(rails) >= len(gpus[host].listed) >= ENOUGH and all(0 < _speed(port) < RAIL for port in rails):
            slow[" and ".join(sorted(rates))].append(host)
    for rate, hosts in slow.items():
        yield Problem(
            "all its InfiniBand ports run at a lower rate than its GPUs come with",
            expected=f"at least {RAIL} Gb/sec each, as machines with a port for each {product} have",
            actual=rate,
            subject=f"{len(ports[hosts[0]])} ports",
            hosts=tuple(hosts),
            where=tuple(Place(host=host) for host in hosts),
            severity=Severity.WARN,
            confidence=Confidence.SUSPECT,
            evidence=(Evidence("/sys/class/infiniband/*/ports/*/rate", rate),),
            values={"device": ports[hosts[0]][0].device},
        )


def _is_off(plan: JobPlan, login: Environment | None) -> bool:
    """Whether NCCL was told to use sockets."""
    env = environment_of(plan, login)
    sockets = env.get("NCCL_NET", "").lower() == "socket"
    return sockets or env.get("NCCL_IB_DISABLE", "0").strip() not in ("", "0")


@check(
    "ib-closed",
    IB_PORTS,
    maybe(IB_CARDS),
    maybe(ENVIRONMENT),
    PLAN,
    damage=Damage.LOAD,
    scope=Scope.CLUSTER,
    backends=(Backend.NCCL,),
    several_hosts=True,
)
def ib_closed(
    ports: Mapping[str, Sequence[InfinibandPort]],
    cards: Mapping[str, Mapping[str, Card]],
    logins: Mapping[str, Environment],
    plan: JobPlan,
) -> Iterator[Problem]:
    """InfiniBand or RoCE ports are up, and closed to this login or container.

    Why it matters: NCCL then takes sockets, and by default its logs do not say so: the job runs at a
    fraction of its speed, or hangs if the other hosts use InfiniBand.

    How it is known: the port is active, and its file in /dev/infiniband is not there, or closed to this
    login. It is a fault if other hosts of the job may open all of theirs, and a warning if none may.

    What to do: start containers with --device=/dev/infiniband --ulimit memlock=-1; on the host itself,
    the files have the mode 0666.
    """
    up = {
        h: [port for port in own if port.is_up and _is_used(port, _wish(plan, logins.get(h)))]
        for h, own in ports.items()
    }
    fabric = {host: _of_fabric(own) for host, own in up.items() if not _is_off(plan, logins.get(host))}
    shut = {host: {name for name, card in own.items() if card.closed} for host, own in cards.items()}
    open_there = [
        host
        for host, own in fabric.items()
        if own and host in shut and not any(port.device in shut[host] for port in own)
    ]
    for host, own in fabric.items():
        closed = [port.device for port in own if port.device in shut.get(host, ())]
        if closed:
            yield Problem(
                "ports of InfiniBand or RoCE are up, and closed to this login",
                expected=f"open, {_others(len(open_there))}" if open_there else "open",
                actual=f"{len(closed)} of {len(own)} are closed",
                subject=fold(closed),
                hosts=(host,),
                where=(Place(host=host),),
                severity=None if open_there else Severity.WARN,
                evidence=(Evidence("/dev/infiniband/uverbs*", f"not for this login: {fold(closed)}"),),
                commands=(
                    "ls -l /dev/infiniband",
                    "# A container needs --device=/dev/infiniband --ulimit memlock=-1",
                ),
            )


_SOCKETS = re.compile(r"Using network Socket|via NET/Socket")
_FABRIC = re.compile(r"Using network (?!Socket)|via NET/(?!Socket)")
_WHY = re.compile(r"No device found|ibv|libibverbs|Unable to open|Disabled for HCA")


@check(
    "smoke-network-unused",
    SMOKE,
    IB_PORTS,
    maybe(ENVIRONMENT),
    PLAN,
    damage=Damage.LOAD,
    scope=Scope.CLUSTER,
    backends=(Backend.NCCL,),
    causes=("ib-closed", "ib-hca-unknown"),
    several_hosts=True,
)
def smoke_network_unused(
    seen: SmokeRounds,
    ports: Mapping[str, Sequence[InfinibandPort]],
    logins: Mapping[str, Environment],
    plan: JobPlan,
) -> Iterator[Problem]:
    """NCCL takes sockets, although ports of InfiniBand or RoCE are up.

    Why it matters: NCCL falls back to sockets without a warning, and the job runs at a fraction of its speed.

    How it is known: NCCL's own account in the smoke run says "Using network Socket" on a host with a port
    that is active and that NCCL may use. It is a fault if other hosts take another network, else a warning.
    Ports of Ethernet cards (RoCE) are judged only if other hosts take them, and nothing is judged if NCCL was
    told to use sockets.

    What to do: NCCL says why in the line before: without libibverbs it finds no card, and without
    /dev/infiniband it opens none. A plugin for the network of a cloud must be installed on each host.
    """
    told = _heard(seen)
    others = [host for host, lines in told.items() if any(map(_FABRIC.search, lines))]
    unused: defaultdict[str, list[str]] = defaultdict(list)
    for host in told:
        login = logins.get(host)
        up = _of_fabric([p for p in ports.get(host, ()) if p.is_up and _is_used(p, _wish(plan, login))])
        judged = up and (others or up[0].layer.lower() == "infiniband")
        if judged and host not in others and not _is_off(plan, login):
            unused[fold(dict.fromkeys(port.device for port in up))].append(host)
    for cards, hosts in unused.items():
        yield Problem(
            "NCCL takes sockets, although ports of InfiniBand or RoCE are up",
            expected=f"one of {cards}" + (f", as on {fold(others)}" if others else ""),
            actual="sockets (TCP)",
            subject="the network of NCCL",
            hosts=tuple(hosts),
            where=tuple(Place(host=host) for host in hosts),
            severity=None if others else Severity.WARN,
            evidence=_account(told[hosts[0]], _SOCKETS),
            commands=(
                "ls -l /dev/infiniband; ldconfig -p | grep libibverbs",
                "# A container needs libibverbs, --device=/dev/infiniband and --ulimit memlock=-1",
            ),
        )


@check(
    "smoke-gpudirect-off",
    SMOKE,
    damage=Damage.LOAD,
    scope=Scope.CLUSTER,
    severity=Severity.WARN,
    backends=(Backend.NCCL,),
    several_hosts=True,
)
def smoke_gpudirect_off(seen: SmokeRounds) -> Iterator[Problem]:
    """NCCL sends from the memory of the GPUs on other hosts, and on this one not (GPUDirect RDMA).

    Why it matters: each message then goes through the memory of the host, at a part of the rate, and all
    ranks wait for it.

    How it is known: by NCCL's own account in the smoke run. Its channels to other hosts end in /GDRDMA on at
    least one host with the same GPUs, and none of this host does. Hosts that are all without it are not
    judged.

    What to do: load nvidia-peermem (`modprobe nvidia-peermem`) or use a driver and kernel with DMA-BUF. In a
    virtual machine ACS and the IOMMU must let the card reach the GPU.
    """
    told = _heard(seen)
    ways = {
        h: [line.removeprefix("via ") for line in lines if line.startswith("via NET/")]
        for h, lines in told.items()
    }
    alike: defaultdict[str, list[str]] = defaultdict(list)
    for run in seen.runs:
        for rank in run.result.ranks:
            host = run.plan.seat(rank.rank).host
            if rank.started and ways.get(host) and host not in alike[rank.started.product]:
                alike[rank.started.product].append(host)
    for product, hosts in alike.items():
        direct = [host for host in hosts if any("/GDRDMA" in way for way in ways[host])]
        lacking = [h for h in hosts if h not in direct and not any("Socket" in way for way in ways[h])]
        if direct and lacking:
            yield Problem(
                "NCCL does not send from the memory of the GPUs (GPUDirect RDMA), as other hosts do",
                expected=f"GDRDMA, as on {fold(direct)} with the same {product[:60] or 'GPUs'}",
                actual=", ".join(dict.fromkeys(ways[lacking[0]]))[:200],
                subject="the network of NCCL",
                hosts=tuple(lacking),
                where=tuple(Place(host=host) for host in lacking),
                evidence=_account(told[lacking[0]], _WHY),
                commands=("lsmod | grep -E 'peermem|nv_peer'", "modprobe nvidia-peermem"),
            )


def _heard(seen: SmokeRounds) -> dict[str, list[str]]:
    """What NCCL said of its network on each host; hosts whose ranks heard nothing are left out."""
    told: defaultdict[str, dict[str, None]] = defaultdict(dict)
    for run in seen.runs:
        for rank in run.result.ranks:
            lines = rank.collectives.network if rank.collectives else ()
            if any(_SOCKETS.search(line) or _FABRIC.search(line) for line in lines):
                told[run.plan.seat(rank.rank).host].update(dict.fromkeys(lines))
    if not told:
        raise Skip("NCCL did not say which network it takes")
    return {host: [*lines] for host, lines in told.items()}


def _account(lines: Sequence[str], also: re.Pattern[str]) -> tuple[Evidence, ...]:
    quoted = [line for line in lines if _WHY.search(line) or also.search(line)][:SHOWN]
    return (Evidence("NCCL in the smoke run", "\n".join(quoted)),) if quoted else ()


def _wish(plan: JobPlan, login: Environment | None) -> str:
    return environment_of(plan, login).get(HCA, "").strip()


@check(
    "ib-hca-unknown",
    IB_PORTS,
    maybe(ENVIRONMENT),
    PLAN,
    damage=Damage.LOAD,
    scope=Scope.CLUSTER,
    backends=(Backend.NCCL,),
)
def ib_hca_unknown(
    ports: Mapping[str, Sequence[InfinibandPort]], logins: Mapping[str, Environment], plan: JobPlan
) -> Iterator[Problem]:
    """NCCL_IB_HCA names an InfiniBand or RoCE card that no host of the job has.

    Why it matters: if no port fits, NCCL takes sockets, and by default its logs do not say so; if some
    fit, the host communicates through fewer ports than was meant.

    How it is known: the variable, of the launch or of the login, is read as NCCL does: beginnings of names,
    after `=` whole names, each perhaps with `:PORT`. What begins with `^` leaves ports out, and is not
    judged. That a host lacks a card that others have is told by ib-port-down. If some names fit, it is a
    warning.

    What to do: name the cards as /sys/class/infiniband does, or unset the variable.
    """
    for host, own in ports.items():
        wish = _wish(plan, logins.get(host))
        if wish[:1] in ("", "^") or "$" in wish or _is_off(plan, logins.get(host)):
            continue
        words = [word.strip() for word in wish.removeprefix("=").split(",") if word.strip()]
        known = [port for each in ports.values() for port in each]
        alien = [word for word in words if not any(_fits(port, word, wish[0] == "=") for port in known)]
        if alien:
            there = fold(dict.fromkeys(port.device for port in own))
            yield Problem(
                f"{HCA} names a card that no host has",
                expected=there,
                actual=f"{HCA}={wish[:100]}",
                subject=", ".join(alien)[:100],
                hosts=(host,),
                severity=None if alien == words else Severity.WARN,
                evidence=(Evidence("/sys/class/infiniband", there),),
                commands=("ls /sys/class/infiniband", f"# Correct {HCA} where it is set."),
            )


@check(
    "ib-gid-wrong",
    IB_PORTS,
    maybe(IB_CARDS),
    maybe(ENVIRONMENT),
    PLAN,
    damage=Damage.BLOCKED,
    scope=Scope.CLUSTER,
    backends=(Backend.NCCL,),
    several_hosts=True,
)
def ib_gid_wrong(
    ports: Mapping[str, Sequence[InfinibandPort]],
    cards: Mapping[str, Mapping[str, Card]],
    logins: Mapping[str, Environment],
    plan: JobPlan,
) -> Iterator[Problem]:
    """A RoCE port has not the kind of address (GID) that the same port of the other hosts has.

    Why it matters: ranks connect by these addresses. If one is empty, local to its link, or of the old kind,
    `ibv_modify_qp` fails or times out, and the job ends when it starts.

    How it is known: if NCCL_IB_GID_INDEX names an index, what is there: nothing is a fault, and so is another
    kind than nearly all other hosts have there. Without it, a port has no IPv4 address in RoCE v2, and the
    same port of nearly all other hosts has one. The index of an address changes when an interface is set down
    and up again.

    What to do: give the interface of the port its address again; unset NCCL_IB_GID_INDEX, because NCCL 2.21
    and later choose the index themselves, or name one that fits all hosts.
    """
    kinds: dict[str, dict[Key, tuple[InfinibandPort, str]]] = {}
    chosen = {}
    for host, own in ports.items():
        login = logins.get(host)
        up = [port for port in own if port.is_up and _is_used(port, _wish(plan, login))]
        roce = [port for port in _of_fabric(up) if port.layer == "Ethernet"]
        if not any(_gids(cards.get(host, {}), port) for port in roce) or _is_off(plan, login):
            continue
        index = environment_of(plan, login).get("NCCL_IB_GID_INDEX", "").strip()
        chosen[host] = index if index.isdecimal() and int(index) < MOST_GIDS else ""
        kinds[host] = {
            _key(port): (port, _kind_of_gid(_gids(cards[host], port), chosen[host])) for port in roce
        }
    for host, own_kinds in kinds.items():
        for key, (port, kind) in own_kinds.items():
            others = Counter(
                theirs[key][1] for other, theirs in kinds.items() if other != host and key in theirs
            )
            usual, count = others.most_common(1)[0] if others else ("", 0)
            agree = count > 1 and count >= NEARLY_ALL * others.total() and usual != kind and usual != NO_GID
            if agree or (kind == NO_GID and chosen[host]):
                gids = _gids(cards[host], port)
                yield Problem(
                    "a RoCE port has no address of the kind that ranks need",
                    expected=f"{usual}, {_others(count)}" if agree else "an address",
                    actual=f"{kind} at index {chosen[host]}" if chosen[host] else kind,
                    subject=port.name,
                    hosts=(host,),
                    where=(Place(host=host),),
                    confidence=Confidence.STRONG,
                    evidence=tuple(
                        Evidence(
                            f"/sys/class/infiniband/{port.device}/ports/{port.number}/gids/{gid.index}",
                            f"{gid.address}, {gid.kind}, {gid.interface}",
                        )
                        for gid in gids[:SHOWN]
                    )
                    or (Evidence(f"/sys/class/infiniband/{port.device}/ports/{port.number}/gids", NO_GID),),
                    commands=(
                        f"ip addr show dev {gids[0].interface}" if gids else "ip addr",
                        "# Give it its address again, or unset NCCL_IB_GID_INDEX: NCCL 2.21 chooses.",
                    ),
                )


MOST_GIDS = 16
"""How many a host shows."""
NO_GID = "no address"


def _gids(own: Mapping[str, Card], port: InfinibandPort) -> tuple[Gid, ...]:
    return own[port.device].gids.get(port.number, ()) if port.device in own else ()


def _kind_of_gid(gids: Sequence[Gid], index: str) -> str:
    """What is at the index; without one, whether any address leads to other networks."""
    if not index:
        return ROUTABLE if any(gid.is_routable for gid in gids) else "no IPv4 address in RoCE v2"
    gid = next((gid for gid in gids if gid.index == int(index)), None)
    if gid is None:
        return NO_GID
    local = gid.address.startswith("fe80:")
    return ROUTABLE if gid.is_routable else f"{'a link-local' if local else 'an'} address in {gid.kind}"


ROUTABLE = "an IPv4 address in RoCE v2"


@check(
    "ib-mtu-differs",
    IB_PORTS,
    maybe(IB_CARDS),
    LINKS,
    PLAN,
    damage=Damage.LOAD,
    scope=Scope.CLUSTER,
    severity=Severity.WARN,
    backends=(Backend.NCCL,),
    several_hosts=True,
)
def ib_mtu_differs(
    ports: Mapping[str, Sequence[InfinibandPort]],
    cards: Mapping[str, Mapping[str, Card]],
    links: Mapping[str, Mapping[str, Counters]],
    plan: JobPlan,
) -> Iterator[Problem]:
    """A RoCE port sends smaller packets than the same port of the other hosts, or larger ones.

    Why it matters: RoCE takes the largest of 256, 512, 1024, 2048 and 4096 bytes that fits the interface. Two
    ends that differ use the smaller one, and the link carries less; what a switch does not pass is lost.

    How it is known: the MTU of the interface that has the port's addresses, on nearly all other hosts.

    What to do: give the interface the same MTU on all hosts (`ip link set dev IF mtu 9000`), and the switches
    too.
    """
    if _is_off(plan, None):
        raise Skip("NCCL_IB_DISABLE or NCCL_NET=Socket is set")
    wish = plan.env.get(HCA, "").strip()
    sizes: defaultdict[Key, dict[str, tuple[int, str]]] = defaultdict(dict)
    for host, own in ports.items():
        up = [port for port in own if port.is_up and _is_used(port, wish)]
        for port in _of_fabric(up):
            name = next((gid.interface for gid in _gids(cards.get(host, {}), port)), "")
            link = links.get(host, {}).get(name)
            if link and link.mtu >= MTUS[0]:
                sizes[_key(port)][host] = max(size for size in MTUS if size <= link.mtu), name
    for key, seen in sizes.items():
        usual, count = Counter(size for size, _ in seen.values()).most_common(1)[0]
        for host, (size, name) in seen.items():
            if size != usual and count > 1 and count >= NEARLY_ALL * (len(seen) - 1):
                yield Problem(
                    "a RoCE port sends packets of another size than that of the other hosts",
                    expected=f"{usual} bytes, {_others(count)}",
                    actual=f"{size} bytes",
                    subject=f"{key[0]} port {key[1]}",
                    hosts=(host,),
                    where=(Place(host=host),),
                    evidence=(Evidence(f"/sys/class/net/{name}/mtu", f"{links[host][name].mtu}"),),
                    remedy="set-mtu",
                    values={"interface": name, "value": _usual_mtu(seen, links, usual)},
                )


MTUS = (256, 512, 1024, 2048, 4096)


def _usual_mtu(
    seen: Mapping[str, tuple[int, str]], links: Mapping[str, Mapping[str, Counters]], usual: int
) -> int:
    """The MTU of the interfaces that fit."""
    mtus = Counter(links[host][name].mtu for host, (size, name) in seen.items() if size == usual)
    return mtus.most_common(1)[0][0]


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


@check(
    "ib-firmware-differs",
    maybe(IB_CARDS),
    damage=Damage.RISK,
    scope=Scope.CLUSTER,
    severity=Severity.WARN,
)
def ib_firmware_differs(cards: Mapping[str, Mapping[str, Card]]) -> Iterator[Problem]:
    """An InfiniBand or RoCE card has another firmware than the other cards of its board.

    Why it matters: cards of one kind that behave differently are the reason why one link of many is slow, or
    goes down under load; a card that came back from repair has the firmware of the day.

    How it is known: cards with the same board id (PSID), of all hosts of the job, three quarters of which
    have one firmware.

    What to do: give the card the firmware of the others (`mlxfwmanager`), and restart the host.
    """
    boards: defaultdict[str, dict[tuple[str, str], str]] = defaultdict(dict)
    for host, own in cards.items():
        for name, card in own.items():
            if card.board and card.firmware:
                boards[card.board][host, name] = card.firmware
    if not boards:
        raise Skip("no InfiniBand card says of which board it is")
    for board, all_cards in boards.items():
        usual, count = Counter(all_cards.values()).most_common(1)[0]
        if count >= MOST_OF * len(all_cards):
            odd = grouped(((host, fw), card) for (host, card), fw in all_cards.items() if fw != usual)
            for (host, firmware), names in odd.items():
                yield Problem(
                    "its firmware is another than on the other cards of its board",
                    expected=f"{usual}, as on {count} cards",
                    actual=firmware,
                    subject=fold(names),
                    hosts=(host,),
                    evidence=(
                        Evidence(f"/sys/class/infiniband/{names[0]}/fw_ver", f"{firmware}, board {board}"),
                    ),
                    commands=(f"# Give it firmware {usual} (mlxfwmanager), then restart the host.",),
                )
