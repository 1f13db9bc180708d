"""Acceptance runs with given rates: the recording of a healthy smoke run, whose ranks measured these."""

import gzip
import json
import math
import random
from collections.abc import Callable, Mapping
from typing import Any

from doctor.exam.demo import FOLDER
from doctor.smoke.onhost.sweepplan import SIZES, TIMED, bus_share

Run = dict[str, Any]
RATE = 1e9
"""Bytes a second."""


def healthy() -> Run:
    data: Run = json.loads(gzip.decompress((FOLDER / "healthy.run.json.gz").read_bytes()))
    return data


def accepting(
    share: Callable[[str, str], float], *, turns: int = 7, noise: float = 0.01, hosts: int = 4, trip: str = ""
) -> Run:
    """Each way carries its share of RATE, with some noise. Round trips to the host `trip` take long."""
    rng, data = random.Random(7), healthy()
    data.update(command="accept", exam="accept")
    (smoke,) = data["smoke"]
    smoke["plan"]["turns"] = turns
    firsts: dict[str, int] = {}
    for seat in smoke["plan"]["seats"]:
        firsts.setdefault(seat["host"], seat["rank"])
    for host in smoke["hosts"]:
        host["load"] = 0.0
    for rank in smoke["ranks"]:
        rank["pairs"] = []
    names = list(firsts)[:hosts]
    for turn in range(1, turns + 1):
        for way in ((a, b) for a in names for b in names if a != b):
            carried = int(0.1 * RATE * share(*way) * math.exp(rng.gauss(0, noise)))
            for me, peer, end in ((*way, "out"), (*way[::-1], "in")):
                told = {"peer": firsts[peer], "round": 0, "stage": turn, "way": end, "bytes": carried}
                rtt = 0.02 if trip in way else 0.0002
                smoke["ranks"][firsts[me]]["pairs"].append(
                    {**told, "seconds": 0.1, "rtt": rtt, "queued": 0.0}
                )
    return data


def losing(data: Run, lost: Mapping[str, float], usual: float = 0.0005) -> Run:
    """With what TCP sent again, as shares of its segments; `lost` as the names of `shares`."""
    (smoke,) = data["smoke"]
    addresses, met = smoke["plan"]["addresses"], set()
    for seat in smoke["plan"]["seats"]:
        host, peers = seat["host"], {}
        for other in addresses if host not in met else ():
            if other != host:
                share = max((part for who, part in lost.items() if _is_of(who, host, other)), default=usual)
                peers[addresses[other]] = [20_000, round(20_000 * share)]
        smoke["ranks"][seat["rank"]]["segments"] = {"ev": "segments", "peers": peers}
        met.add(host)
    return data


def shares(slow: Mapping[str, float]) -> Callable[[str, str], float]:
    """`slow`: what "node2", "node2>" (sends), ">node2" (receives), "node1-node2", "node1>node2" or a side
    "node1,node2" carries.
    """

    def share(sender: str, receiver: str) -> float:
        return min((part for who, part in slow.items() if _is_of(who, sender, receiver)), default=1.0)

    return share


def _is_of(who: str, sender: str, receiver: str) -> bool:
    if "," in who:
        side = who.split(",")
        return (sender in side) != (receiver in side)
    if "-" in who:
        return {*who.split("-")} == {sender, receiver}
    out, sign, into = who.partition(">")
    if not sign:
        return who in (sender, receiver)
    return (not out or out == sender) and (not into or into == receiver)


def timed(data: Run, rate: float = 1e8, *, inside: Mapping[str, float] | None = None) -> Run:
    """With collectives by size, up to 4 MB, whose links carry so many bytes a second; `inside`: the hosts on
    which it is another share of that inside.
    """
    (smoke,) = data["smoke"]
    smoke["plan"]["sweep"] = 15.0
    hosts = {seat["rank"]: seat["host"] for seat in smoke["plan"]["seats"]}
    for rank in smoke["ranks"]:
        first, host = rank["rank"] % 2 == 0, hosts[rank["rank"]]
        scopes = {"intra": 2, "inter": 4, "all": 8} if rank["rank"] == 0 else {"intra": 2} if first else {}
        rank["sweep"] = [
            {"scope": scope, "op": op, "bytes": size, "ranks": ranks, "calls": 20, "seconds": list(times)}
            for scope, ranks in scopes.items()
            for op in TIMED
            for size in SIZES[:7]
            for own in (rate * ((inside or {}).get(host, 1.0) if scope == "intra" else 1.0),)
            for middle in (1e-4 + size * bus_share(op, ranks) / own,)
            for times in ((0.9 * middle, middle, 3 * middle),)
        ]
    return data


USUAL = {"matmul": 1e11, "copy": 2e10, "write": 4e8, "read": 9e8, "fsync": 500.0}


def alone(
    data: Run, slow: Mapping[str, float], *, noise: float = 0.01, stretch: float = 1.0, file_system: str = ""
) -> Run:
    """With what each host does alone. `slow`: what "node2 matmul" or "node2 write" is of the usual, in both
    passes; with "!" at its end in the second alone. `file_system`: that of the first host, if it is its own.
    """
    rng, (smoke,) = random.Random(5), data["smoke"]
    smoke["plan"]["paths"] = ["/dev/shm", "/data"]
    firsts: dict[str, int] = {}
    for seat in smoke["plan"]["seats"]:
        firsts.setdefault(seat["host"], seat["rank"])
    for seat in smoke["plan"]["seats"]:
        smoke["ranks"][seat["rank"]]["alone"] = [
            {
                "ev": "alone",
                "what": what,
                "rates": rates,
                "stretch": stretch if computes else 0.0,
                **({} if computes else {"folder": "/data", "on": own or "xfs"}),
            }
            for end in ("", "!")
            for what, usual in USUAL.items()
            for computes in (what in ("matmul", "copy"),)
            for own in (file_system if seat["host"] == "node1" else "",)
            if computes or seat["rank"] == firsts[seat["host"]]
            for name in (f"{seat['host']} {what}",)
            for part in (slow.get(name, slow.get(name + "!", 1.0) if end else 1.0),)
            for rates in ([part * usual * math.exp(rng.gauss(0, noise)) for _ in range(7)],)
        ]
    return data
