"""What an acceptance test measured of links and collectives, as reports and checks need it."""

from collections.abc import Sequence

import msgspec

from doctor.facts.smoke import JudgedRun
from doctor.floors import CollectiveFloor
from doctor.smoke.judge.links import SLOWER_THAN_NETWORKS, measured_cells
from doctor.smoke.judge.one_way import OneWayRates
from doctor.smoke.onhost.sweepplan import SCOPES, TIMED, bus_share, size_text

LEFT_OF_MANY = 0.56
"""What is left of the noise of one turn in the median of five."""


class CollectiveRate(msgspec.Struct, frozen=True):
    """How long calls of a collective of one size took, each by its slowest rank."""

    scope: str
    op: str
    bytes: int
    ranks: int
    host: str | None
    calls: int
    least_ms: float
    median_ms: float
    worst_ms: float
    algorithm_bytes_per_second: int
    bus_bytes_per_second: int

    @property
    def name(self) -> str:
        return f"{self.scope} {self.op} {size_text(self.bytes)}"

    @property
    def at_best(self) -> float:
        """The bus bandwidth of the quickest call."""
        return self.bus_bytes_per_second * self.median_ms / self.least_ms


def named(rates: Sequence[CollectiveRate], floor: CollectiveFloor) -> list[CollectiveRate]:
    """What a floor is about. Where all ranks are the only group, this group has the name of all too."""
    only = rates[0].scope if len({each.scope for each in rates}) == 1 else "all"
    return [each for each in rates if each.name in (floor.name, floor.name.replace("all", only, 1))]


def collective_rates(run: JudgedRun) -> tuple[CollectiveRate, ...]:
    """Each collective of each size, in the order of the plan."""
    found: dict[tuple[int, int, int, str], CollectiveRate] = {}
    for seat, seen in zip(run.plan.seats, run.result.ranks, strict=True):
        for said in seen.sweep:
            host = seat.host if said.scope == "intra" else None
            least, middle, worst = (round(1e3 * seconds, 6) for seconds in said.seconds)
            rates = (round(s * said.bytes / said.seconds[1]) for s in (1, bus_share(said.op, said.ranks)))
            about = said.scope, said.op, said.bytes, said.ranks, host, said.calls
            place = SCOPES.index(said.scope), TIMED.index(said.op), said.bytes, host or ""
            found.setdefault(place, CollectiveRate(*about, least, middle, worst, *rates))
    return tuple(found[place] for place in sorted(found))


def rates_of_pairs(runs: Sequence[JudgedRun]) -> OneWayRates | None:
    """What the last run measured that measured all pairs; None if there is none."""
    results = [run.result for run in reversed(runs) if run.plan.turns]
    cells = (c for r in results if r.plan.backend not in SLOWER_THAN_NETWORKS for c in measured_cells(r))
    return next((cell.one_way for cell in cells if cell.one_way), None)
