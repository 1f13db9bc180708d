"""What each host does alone in an acceptance test."""

import math
from collections.abc import Sequence
from statistics import median

import msgspec

from doctor.api import grouped
from doctor.facts.smoke import JudgedRun
from doctor.floors import CollectiveFloor
from doctor.smoke.judge.speed import SHARED, spread

BUSY = 0.5
"""The load of a core from which on a host is used by others, too."""
TIMES = ("login", "start", "dns")
"""What is measured in seconds."""


class HostRate(msgspec.Struct, frozen=True):
    """What a rank of a host computed and copied, or a folder stored, alone; or how long its start took."""

    host: str
    rank: int
    what: str
    folder: str
    file_system: str
    passes: tuple[float, ...]
    noise: float
    stretch: float
    shared: bool
    problem: str

    @property
    def name(self) -> str:
        return f"{self.what} {self.folder}".strip()

    @property
    def rate(self) -> float:
        return median(self.passes)

    @property
    def text(self) -> str:
        return rate_text(self.what, self.rate)


def rate_text(what: str, rate: float) -> str:
    if what in ("fsync", "train"):
        return f"{rate:,.{0 if rate >= 20 else 1}f}/s"
    prefixes = (1.0, "") if what in TIMES else (1e9, "G") if what == "matmul" or rate >= 1e9 else (1e6, "M")
    one, prefix = (1e12, "T") if what == "matmul" and rate >= 1e12 else prefixes
    return f"{rate / one:.3g} {prefix}{'s' if what in TIMES else 'FLOP/s' if what == 'matmul' else 'B/s'}"


def host_rates(run: JudgedRun) -> tuple[HostRate, ...]:
    """By what was measured, in the order of the ranks."""
    found: list[HostRate] = []
    crowded = {each.host for each in run.result.hosts if each.load > BUSY * each.cores}
    seen_by = list(zip(run.plan.seats, run.result.ranks, strict=True))
    crowded |= {seat.host for seat, seen in seen_by for each in seen.alone if each.stretch > SHARED}
    for seat, seen in seen_by:
        for (what, folder), said in grouped(((each.what, each.folder), each) for each in seen.alone).items():
            passes = tuple(float(f"{median(each.rates):.4g}") for each in said if each.rates)
            logs = [[math.log(rate) for rate in each.rates] for each in said if each.rates]
            noise, stretch = max(map(spread, logs), default=0.0), max(each.stretch for each in said)
            why, shared = max(each.why for each in said), seat.host in crowded
            place = seat.host, seat.rank, what, folder, said[0].on
            found.append(HostRate(*place, passes, round(noise, 4), round(stretch, 3), shared, why))
    for own in run.result.hosts if found else ():
        start, first = own.imported and own.imported - (own.login or 0.0), run.plan.on(own.host)[0].rank
        for name, seconds in zip(TIMES, (own.login, start, own.reverse_dns), strict=True):
            times = (round(seconds, 6),) if seconds else ()
            found += [HostRate(own.host, first, name, "", "", times, 0.0, 0.0, False, "")] if times else []
    order = {name: place for place, name in enumerate(dict.fromkeys(each.name for each in found))}
    return tuple(sorted(found, key=lambda each: order[each.name]))


def of_floor(rates: Sequence[HostRate], floor: CollectiveFloor) -> list[HostRate]:
    return [each for each in rates if each.passes and floor.name == f"host {each.name}"]
