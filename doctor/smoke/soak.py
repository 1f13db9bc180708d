"""A soak: what rounds of a smoke run measured on each host, in a space that does not grow. Pure."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from statistics import median

from doctor.smoke.judge.links import SLOWER_THAN_NETWORKS, measured_cells
from doctor.smoke.result import SmokeResult

MOST = 1000
"""The most rounds that are kept: of more, every second, fourth, eighth."""
Figures = Mapping[str, Mapping[str, float]]
"""What is done -> host -> how much of it a second."""


@dataclass(frozen=True, slots=True)
class Soak:
    """When every so many rounds of those that were `done` began, in seconds since 1970, and their figures;
    `left`: who broke a round, when, why, and if it is undecided who; `lacking`: seconds it was too short.
    `readings`: what counters of the hosts have changed to by then, since the reading before.
    """

    rounds: tuple[tuple[float, Figures], ...] = ()
    every: int = 1
    done: int = 0
    left: tuple[tuple[tuple[str, ...], float, str, bool], ...] = ()
    lacking: float = 0.0
    readings: tuple[tuple[float, Figures], ...] = ()

    def with_round(self, at: float, figures: Figures) -> "Soak":
        rounds, every = (*self.rounds, *([] if self.done % self.every else [(at, figures)])), self.every
        if len(rounds) > MOST:
            rounds, every = rounds[::2], 2 * every
        return replace(self, rounds=rounds, every=every, done=self.done + 1)

    @property
    def latest(self) -> dict[str, dict[str, float]]:
        """Counter -> host -> what it was when it was read last."""
        return merged(own for _, own in self.readings)

    def with_reading(self, at: float, now: Figures) -> "Soak":
        last = self.latest
        news = {w: {h: v for h, v in own.items() if last.get(w, {}).get(h) != v} for w, own in now.items()}
        first, *later = (*self.readings, (at, {what: own for what, own in news.items() if own}))
        if len(later) > MOST:
            twos = zip(later[::2], later[1::2], strict=False)
            later = [(two[0], merged((one[1], two[1]))) for one, two in twos]
        return replace(self, readings=(first, *later))

    @property
    def told(self) -> dict[str, dict[str, tuple[float, float, float, float]]]:
        """What is done -> host -> its first, worst, median and last figure."""
        told: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
        for _, figures in self.rounds:
            for what, own in figures.items():
                for host, value in own.items():
                    told[what][host].append(value)
        return {w: {h: (v[0], min(v), median(v), v[-1]) for h, v in own.items()} for w, own in told.items()}


def merged(figures: Iterable[Figures]) -> dict[str, dict[str, float]]:
    """All of them; the later one counts."""
    found: dict[str, dict[str, float]] = {}
    for each in figures:
        for what, own in each.items():
            found.setdefault(what, {}).update(own)
    return found


def figures_of(result: SmokeResult) -> Figures:
    """Of each host by its slowest rank, and by its best link: a slow peer slows the others. What it trains is
    by the second of its own computing, and not of processor time as the rest, so that a quota shows.
    """
    found: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for seat, seen in zip(result.plan.seats, result.ranks, strict=True):
        steps = seen.steps[len(seen.steps) // 3 :]
        if busy := sum(step.compute for step in steps):
            found["train"][seat.host].append(len(steps) / busy)
        for said in seen.alone:
            if said.rates and said.what != "fsync":
                found[f"{said.what} {said.folder}".strip()][seat.host].append(median(said.rates))
    cells = () if result.plan.backend in SLOWER_THAN_NETWORKS else measured_cells(result)
    for rates in (cell.one_way for cell in cells):
        for (sender, receiver), rate in rates.middle.items() if rates else ():
            found["sends"][sender].append(-rate)
            found["receives"][receiver].append(-rate)
    return {w: {h: float(f"{abs(min(v)):.5g}") for h, v in own.items() if min(v)} for w, own in found.items()}
