"""Partitions of InfiniBand: whether the ports of the job are members of one."""

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping

from doctor.api import (
    PLAN,
    Capture,
    Damage,
    Evidence,
    Fact,
    JobPlan,
    Place,
    Problem,
    Read,
    Scope,
    Severity,
    Skip,
    check,
    files,
    grouped,
    maybe,
)
from doctor.facts.infiniband import IB_PORTS, InfinibandPort
from doctor.rules.machines import votes_of

FULL = 0x8000
"""This bit of a key: a full member, who may talk to all; others may talk to full members only."""
_KEY = re.compile(r"/sys/class/infiniband/([\w.-]{1,64})/ports/(\d{1,3})/pkeys/(\d{1,3})")
Keys = Mapping[tuple[str, int], Mapping[int, int]]
"""Device and port -> index -> key."""


def _keys(capture: Capture) -> Keys:
    found: defaultdict[tuple[str, int], dict[int, int]] = defaultdict(dict)
    texts = files(capture)
    for path, text in texts.items():
        place, key = _KEY.fullmatch(path), re.fullmatch(r"0x([0-9a-f]{4})", text.strip())
        layer = f"{path.partition('/pkeys/')[0]}/link_layer"
        if place and key and texts.get(layer, "").strip() == "InfiniBand":
            found[place[1], int(place[2])][int(place[3])] = int(key[1], 16)
    return found


IB_KEYS = Fact(
    "ib-keys",
    Read(tuple(f"/sys/class/infiniband/*/ports/*/{name}" for name in ("pkeys/[0-7]", "link_layer"))),
    _keys,
)


@check(
    "ib-partition-differs",
    maybe(IB_KEYS),
    maybe(IB_PORTS),
    PLAN,
    damage=Damage.BLOCKED,
    scope=Scope.CLUSTER,
    severity=Severity.WARN,
    several_hosts=True,
)
def ib_partition_differs(
    keys: Mapping[str, Keys], states: Mapping[str, tuple[InfinibandPort, ...]], plan: JobPlan
) -> Iterator[Problem]:
    """An InfiniBand port is in another partition than the same port of the other hosts.

    Why it matters: packets between partitions are dropped by the switches, without an error at the sender:
    the first collective waits until the transfer is given up (error 12).

    How it is known: the key that NCCL takes, at the index NCCL_IB_PKEY or 0, is compared between the ports of
    one name that are up, on all hosts of the job. Two limited members (keys below 0x8000) of one partition do
    not reach each other either.

    What to do: have the subnet manager give the port the key of the others (partitions.conf of opensm, or
    UFM), or set NCCL_IB_PKEY to the index that holds the same key on each host.
    """
    index = plan.env.get("NCCL_IB_PKEY", "")
    at = int(index) if re.fullmatch(r"\d{1,3}", index) else 0
    ports: defaultdict[tuple[str, int], dict[str, int]] = defaultdict(dict)
    for host, own in keys.items():
        up = {(port.device, port.number) for port in states.get(host, ()) if port.is_up}
        for port, held in own.items():
            if held.get(at) and port in up:
                ports[port][host] = held[at]
    if not any(len(hosts) > 1 for hosts in ports.values()):
        raise Skip("no two hosts have an InfiniBand port of one name")
    odd: list[tuple[tuple[str, str, str], tuple[str, int]]] = []
    for port, hosts in ports.items():
        votes, tie = votes_of({host: f"0x{key | FULL:04x}" for host, key in hosts.items()})
        usual = "" if tie else votes[0][0]
        odd += [
            ((host, value, usual), port) for value, names in (votes if tie else votes[1:]) for host in names
        ]
        limited = [host for host, key in hosts.items() if not key & FULL]
        if len(limited) > 1 and len(votes) == 1:
            odd += [((host, "limited", ""), port) for host in limited]
    for (host, value, usual), names in grouped(odd).items():
        yield _problem(host, value, usual, names, at, keys[host])


def _problem(host: str, value: str, usual: str, ports: list[tuple[str, int]], at: int, own: Keys) -> Problem:
    device, number = ports[0]
    path = f"/sys/class/infiniband/{device}/ports/{number}/pkeys/{at}"
    limited = value == "limited"
    return Problem(
        "its InfiniBand port is a limited member of its partition, as on another host"
        if limited
        else "its InfiniBand port is in another partition than on the other hosts",
        expected="at most one limited member"
        if limited
        else f"{usual} at index {at}"
        if usual
        else "the same on all hosts",
        actual=value,
        hosts=(host,),
        where=(Place(host=host),),
        subject=", ".join(f"{name} port {port}" for name, port in ports[:4]),
        evidence=(Evidence(path, f"0x{own[ports[0]][at]:04x}"),),
        commands=(
            "# Have the subnet manager give the port the key of the others (opensm: partitions.conf).",
        ),
    )
