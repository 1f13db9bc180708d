"""InfiniBand and RoCE ports between the hosts: up where the same port of the other hosts is."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from doctor.api import (
    PLAN,
    Backend,
    Confidence,
    Evidence,
    JobPlan,
    Place,
    Problem,
    Scope,
    Severity,
    Skip,
    check,
)
from doctor.facts.infiniband import IB_PORTS, Port

HCA = "NCCL_IB_HCA"
NEARLY_ALL = 0.9


@check(
    "ib-port-down",
    IB_PORTS,
    PLAN,
    scope=Scope.CLUSTER,
    remedy="look-at-ib-port",
    backends=(Backend.NCCL,),
    several_hosts=True,
)
def ib_port_down(ports: Mapping[str, Sequence[Port]], plan: JobPlan) -> Iterator[Problem]:
    """An InfiniBand or RoCE port is down on a host where the other hosts have it up.

    Why it matters: NCCL gives each GPU its own port. With one down, that host talks through fewer ports than
    the others, over another rail, or through TCP: the job does not start, or all its steps are slow.

    How it is known: the same port (mlx5_0 port 1) on the other hosts. One that is down everywhere is taken as
    not in use, unless NCCL_IB_HCA names it.

    What to do: a port that is polling or disabled has no partner: look at the cable, the transceiver and the
    port of the switch. One that is initializing has its link, but no subnet manager has set it up: look
    whether opensm, or that of the switch, runs. NCCL_IB_HCA names the ports that the job shall use.
    """
    if plan.env.get("NCCL_IB_DISABLE", "0").strip() not in ("", "0"):
        raise Skip("NCCL_IB_DISABLE is set")
    wish = plan.env.get(HCA, "").strip()
    used = {host: [port for port in own if _is_used(port, wish)] for host, own in ports.items()}
    for host, own in used.items():
        like = Counter(_key(p) for name, theirs in used.items() if name != host for p in theirs)
        up = Counter(_key(p) for name, theirs in used.items() if name != host for p in theirs if p.is_up)
        for port in own:
            if not port.is_up:
                yield from _down(host, port, up[_key(port)], like[_key(port)], wish)
        there = {_key(port) for port in own}
        for key, hosts in up.items():
            if key not in there and len(own) < max(len(theirs) for theirs in used.values()):
                yield from _gone(host, key, hosts, len(used) - 1)


def _key(port: Port) -> tuple[str, int, str]:
    """Ports of one name that are of different kinds are not compared: numbers differ from host to host."""
    return port.device, port.number, port.layer


def _is_used(port: Port, wish: str) -> bool:
    """Whether NCCL may take it: NCCL_IB_HCA lists beginnings of names, `=` exact ones, `^` those left out."""
    plain = wish.removeprefix("^").removeprefix("=")
    exact = wish.removeprefix("^").startswith("=")
    words = [word.strip() for word in plain.split(",") if word.strip()]
    return not words or any(_fits(port, word, exact) for word in words) != wish.startswith("^")


def _fits(port: Port, word: str, exact: bool) -> bool:
    name, _, number = word.partition(":")
    named = port.device == name if exact else port.device.startswith(name)
    return named and (not number or number == str(port.number))


def _down(host: str, port: Port, up: int, like: int, wish: str) -> Iterator[Problem]:
    meant = bool(wish) and not wish.startswith("^")
    unmanaged = port.state == "initializing" and port.layer.lower() != "ethernet"
    if not (up or meant or unmanaged):
        return
    sure = meant or (up and up >= NEARLY_ALL * like)
    yield Problem(
        "no subnet manager has set up an InfiniBand port"
        if unmanaged
        else f"{_kind(port.layer)} port is down",
        expected=f"active, {_others(up)}" if up else f"active, for {HCA}={wish}" if meant else "active",
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


def _gone(host: str, key: tuple[str, int, str], up: int, others: int) -> Iterator[Problem]:
    device, number, layer = key
    if up >= NEARLY_ALL * others:
        yield Problem(
            f"{_kind(layer)} port is not there",
            expected=f"active, {_others(up)}",
            actual="no such port",
            subject=f"{device} port {number}",
            hosts=(host,),
            where=(Place(host=host),),
            severity=None if others > 1 else Severity.WARN,
            confidence=Confidence.STRONG if others > 1 else Confidence.SUSPECT,
            evidence=(Evidence("/sys/class/infiniband", f"no {device}/ports/{number}"),),
            values={"device": device},
        )


def _others(count: int) -> str:
    return f"as on {count} other host{'s' if count > 1 else ''} of the job"


def _kind(layer: str) -> str:
    return "a RoCE" if layer.lower() == "ethernet" else "an InfiniBand"
