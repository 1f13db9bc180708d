"""The plan of the collectives that an acceptance test times by size. Pure and without torch."""

from __future__ import annotations

from statistics import median

from doctor.smoke.onhost.collectiveplan import LACKING
from doctor.smoke.onhost.shape import CellShape, CollectiveCall

SCOPES = ("intra", "inter", "all")
"""Inside each host, between one rank of each host, and over all ranks."""
TIMED = ("all_reduce", "all_gather", "reduce_scatter", "broadcast", "all_to_all", "send_recv")
GROWTH = 4
SIZES = tuple(1024 * GROWTH**n for n in range(11))
WARM_UP, LEAST, MOST = 2, 5, 20
"""Calls of each size that are not counted, and how many are."""
SHARE = 0.125
"""The share of the time of a collective that more than the least number of calls of one size may take."""


def scopes(shape: CellShape) -> dict[str, str]:
    """Where collectives are timed -> the group of the ranks that do so."""
    many = max(shape.hosts) > 1
    if not shape.sweep or shape.world < 2:
        return {}
    if many and len(shape.hosts) > 1:
        return {"intra": "intra", "inter": "inter", "all": "world"}
    return {"intra" if many else "inter": "world"}


def sweep_calls(shape: CellShape, place: int) -> list[CollectiveCall]:
    """The calls that a rank's page shows: one for all sizes of a collective."""
    groups = [group for group in scopes(shape).values() if len(shape.members(group, place)) > 1]
    return [
        CollectiveCall(0, group, op, "float32", SIZES[0]) for group in groups for op in timed(shape.backend)
    ]


def timed(backend: str) -> list[str]:
    return [op for op in TIMED if op not in LACKING.get(backend, ())]


def size_text(size: int) -> str:
    """ "64MB": units are powers of 1,024, as in nccl-tests."""
    units = (30, "GB"), (20, "MB"), (10, "KB")
    return next(f"{size >> bits}{unit}" for bits, unit in units if size >> bits)


def bus_share(op: str, ranks: int) -> float:
    """What a link carries of each byte of a collective: the factors of nccl-tests."""
    if op in ("broadcast", "send_recv"):
        return 1.0
    return (2 if op == "all_reduce" else 1) * (ranks - 1) / ranks


class SweepPace:
    """Which size is next, and how often, until the time is used up: all members conclude it from the same."""

    def __init__(self, seconds: float) -> None:
        self.seconds = self.left = seconds
        self.size = SIZES[0]
        self.times = 1
        """How many calls are counted, after those to warm up."""
        self.warm = self.done = False

    def took(self, calls: list[float]) -> list[float]:
        """The times that count, of those of the slowest member in each call; none while nothing was warm."""
        counted, growth = (calls[WARM_UP:], GROWTH) if self.warm else ([], 1)
        self.left -= sum(calls)
        expected = max(growth * median(calls[WARM_UP:]), 1e-9)
        fitting = int(self.left / expected) - WARM_UP
        self.times = max(LEAST, min(MOST, fitting, int(SHARE * self.seconds / expected)))
        self.done = self.warm and (fitting < LEAST or self.size == SIZES[-1])
        self.size *= growth
        self.warm = True
        return counted
