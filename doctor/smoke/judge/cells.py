"""One cell of a finished run, as the judges of its numbers need it: by places, replicas and steps."""

from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import takewhile
from typing import NamedTuple, TypeVar

import msgspec

from doctor.model import Confidence, Evidence
from doctor.smoke.events import Audit, BatchHashes, RankStart, Sums, TrainStep
from doctor.smoke.judge.charge import SmokeCharge, Worded, ranks_text
from doctor.smoke.onhost.shape import CellShape
from doctor.smoke.result import RankOutcome, SmokeResult
from doctor.text.grouped import grouped

NOT_ARITHMETIC = ("python", "numpy")
"""Versions that do not change what torch computes."""


@dataclass(frozen=True, slots=True)
class Cell:
    """One cell; `seen` is in the order of places. Reports of steps that are not in the plan are left out."""

    number: int
    shape: CellShape
    ranks: tuple[int, ...]
    seen: tuple[RankOutcome, ...]

    @property
    def places(self) -> range:
        return range(len(self.seen))

    @property
    def within(self) -> float | None:
        """How close equal results must be, as a share of all magnitudes; None if every bit must be equal."""
        return tolerance(self.seen)

    @property
    def closeness(self) -> str:
        within = self.within
        return "in every bit" if within is None else f"within {within:.0e} of its magnitude"

    def numbers(self, places: Iterable[int]) -> tuple[int, ...]:
        """Places as ranks of the whole run."""
        return tuple(self.ranks[place] for place in sorted(places))

    def charge(
        self,
        words: Worded,
        guilty: Iterable[int],
        among: Iterable[int] = (),
        source: str = "",
        lines: Iterable[str] = (),
        *,
        step: int | None = None,
        decided: bool = True,
        confidence: Confidence = Confidence.CERTAIN,
    ) -> SmokeCharge:
        """The charge against these places; the others that they were among are its victims."""
        places = {*guilty}
        return SmokeCharge(
            *words,
            ranks=self.numbers(places),
            victims=self.numbers({*among} - places),
            step=step,
            confidence=confidence,
            undecided=not decided,
            evidence=(Evidence(source, "\n".join(lines)),) if source else (),
        )

    def name(self, place: int) -> str:
        return ranks_text([self.ranks[place]])

    def replica(self, dp: int) -> list[int]:
        return self.shape.replica(dp)

    @property
    def peers(self) -> str:
        """What the ranks of a replica are to each other."""
        return "tensor-parallel peers" if self.shape.stages == 1 else "peers in the same replica"

    @property
    def columns(self) -> list[list[int]]:
        """For each part of the model, the places that hold it."""
        return [
            [place for place in self.places if self.shape.part_of(place) == part]
            for part in range(self.shape.parts)
        ]

    def batches(self, place: int) -> dict[int, BatchHashes]:
        return {batch.step: batch for batch in self.seen[place].batches if batch.step < self.shape.steps}

    def steps(self, place: int) -> dict[int, TrainStep]:
        return {step.step: step for step in self.seen[place].steps if step.step < self.shape.steps}

    def common_steps(self, places: Iterable[int]) -> list[dict[int, TrainStep]]:
        """For each step that all of them finished, from the first one: place -> what it reported."""
        said = {place: self.steps(place) for place in places}
        steps = range(self.shape.steps) if said else ()
        common = takewhile(lambda step: all(step in known for known in said.values()), steps)
        return [{place: known[step] for place, known in said.items()} for step in common]


def cells(result: SmokeResult) -> Iterator[Cell]:
    for number, ranks in enumerate(result.plan.cells):
        yield Cell(number, result.plan.shape(number), ranks, result.cell_ranks(number))


class Vote(NamedTuple):
    """`decided`: more than half agree, and `odd` are the others; else `odd` are all of them."""

    odd: tuple[int, ...]
    decided: bool


def vote(values: Mapping[int, Hashable]) -> Vote | None:
    """Which keys differ from the majority; None if all agree. If two values tie, either may be wrong."""
    if len(set(values.values())) < 2:
        return None
    common, times = Counter(values.values()).most_common(1)[0]
    if 2 * times > len(values):
        return Vote(tuple(sorted(key for key, value in values.items() if value != common)), True)
    return Vote(tuple(sorted(values)), False)


def vote_of_most(cell: Cell, values: Mapping[int, str], basis: Mapping[int, Hashable | None]) -> Vote | None:
    """The vote of the largest group with an equal basis. Voters on one host alone are no majority."""
    known = ((basis[place], (place, value)) for place, value in values.items() if basis[place] is not None)
    largest = max(grouped(known).values(), key=len, default=[])
    most = dict(largest)
    found = vote(most)
    if found and found.decided:
        host = cell.shape.host_of
        right = {host(place) for place in most if place not in found.odd}
        if len(right) == 1 and right != {host(place) for place in found.odd}:
            return Vote(tuple(sorted(most)), False)
    return found


def arithmetic(started: RankStart | None) -> Hashable:
    """Equal for ranks whose floating-point results must agree in every bit."""
    if started is None:
        return None
    versions = {name: version for name, version in started.versions.items() if name not in NOT_ARITHMETIC}
    return (started.product, tuple(sorted(versions.items())))


def alike(cell: Cell, places: Iterable[int]) -> bool:
    """Whether the results of these ranks may be compared bit by bit."""
    return len({arithmetic(cell.seen[place].started) for place in places}) == 1


def everybody(result: SmokeResult, charge: SmokeCharge, cell: Cell) -> SmokeCharge:
    """The charge against all ranks of a cell; it names them only if there are other cells."""
    if len(result.plan.cells) == 1:
        return replace(charge, ranks=(), victims=cell.ranks)
    return replace(charge, ranks=cell.ranks, undecided=True)


def without(charge: SmokeCharge, ranks: Iterable[int]) -> SmokeCharge | None:
    """The charge without these ranks; None if no rank is left."""
    gone = set(ranks)
    left = tuple(rank for rank in charge.ranks if rank not in gone)
    return replace(charge, ranks=left) if left else None


K = TypeVar("K", bound=Hashable)
LEAST, TIMES, MOST = 1e-5, 20, 1e-2
"""A difference counts if it exceeds TIMES the spread of repeated runs, clamped to LEAST…MOST."""


def wavering(result: SmokeResult) -> tuple[int, ...]:
    """The ranks that computed one gradient several times and did not get the same bits."""
    return tuple(seen.rank for seen in result.ranks if _wavers(seen))


def _wavers(seen: RankOutcome) -> bool:
    return seen.bits is not None and len(set(seen.bits.tries)) > 1


def tolerance(ranks: Iterable[RankOutcome]) -> float | None:
    """The share of all magnitudes by which equal results of these ranks may differ; None: not by a bit. If
    any wavered in the first step, numbers are compared instead of hashes: devices may give other bits.
    """
    spreads = [seen.bits.spread for seen in ranks if seen.bits and _wavers(seen)]
    return min(max(LEAST, TIMES * max(spreads)), MOST) if spreads else None


def close_audits(
    audits: Mapping[int, Audit], what: Mapping[int, Sequence[Hashable]], within: float
) -> dict[int, Audit]:
    """The audits with texts for hashes, equal for close gradients; `what`: what each place computed."""
    sums = {place: audit.sums for place, audit in audits.items() if audit.sums}
    words = close_gradients(sums, {place: (what[place][0], *what[place]) for place in sums}, within)
    return {
        place: msgspec.structs.replace(audits[place], used=used, votes=tuple(votes))
        for place, (used, *votes) in words.items()
    }


def close_gradients(
    sums: Mapping[int, Sequence[Sums]], what: Mapping[int, Sequence[Hashable]], within: float
) -> dict[int, list[str]]:
    """Texts for gradients, by place: equal for close gradients of what is equal in `what`."""
    same: dict[Hashable, dict[tuple[int, int], Sums]] = defaultdict(dict)
    for place, each in sums.items():
        for number, (computed, value) in enumerate(zip(what[place], each, strict=False)):
            same[computed][place, number] = value
    words = {key: word for values in same.values() for key, word in close(values, within).items()}
    counts = {place: min(len(each), len(what[place])) for place, each in sums.items()}
    return {place: [words[place, number] for number in range(count)] for place, count in counts.items()}


def close(values: Mapping[K, Sums], within: float) -> dict[K, str]:
    """Texts for values: equal if no gap between the values is larger than `within` allows."""
    allowed = within * max((sums[1] for sums in values.values()), default=0.0)
    words: dict[K, str] = {}
    first = last = 0.0
    for key in sorted(values, key=lambda key: values[key][0]):
        value = values[key][0]
        if not words or value - last > allowed:
            first = value
        last = value
        words[key] = f"about {first:.6g}"
    return words
