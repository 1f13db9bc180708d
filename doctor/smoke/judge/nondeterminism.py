"""Devices whose results are not the same bits each time: how closely these results may be compared.

If any rank of a cell wavered in the training's first step, numbers are compared instead of hashes, and those
that lie close together count as equal.
"""

from collections import defaultdict
from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import TypeVar

import msgspec

from doctor.smoke.events import Audit, Sums
from doctor.smoke.result import RankOutcome, SmokeResult

K = TypeVar("K", bound=Hashable)
LEAST, TIMES, MOST = 1e-5, 20, 1e-2
"""A difference counts if it exceeds TIMES the spread of repeated runs, clamped to LEAST…MOST."""


def wavering(result: SmokeResult) -> tuple[int, ...]:
    """The ranks that computed one gradient several times and did not get the same bits."""
    return tuple(seen.rank for seen in result.ranks if _wavers(seen))


def _wavers(seen: RankOutcome) -> bool:
    return seen.bits is not None and len(set(seen.bits.tries)) > 1


def tolerance(ranks: Iterable[RankOutcome]) -> float | None:
    """The share of all magnitudes by which equal results of these ranks may differ; None: not by a bit."""
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
