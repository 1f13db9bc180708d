"""Names the rank that is late again and again in a job that moves, if this cannot be chance. It is not an
accusation.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from math import comb

from doctor.hang.judge.judgement import HangState, Judgement, Straggler
from doctor.hang.judge.wires import Key

LOOKS = 5
"""The fewest looks that can name a straggler."""
OFTEN = 0.8
"""The share of looks in which the rank must be outside."""
CHANCE = 0.001
"""The probability that any of equal ranks is outside this often; a straggler must be less likely."""


@dataclass(slots=True)
class Stragglers:
    """What the looks at one job showed. A look in which no rank waits for another does not count."""

    looks: int = 0
    ranks: int = 0
    outside: Counter[Key] = field(default_factory=Counter)
    names: dict[Key, int | None] = field(default_factory=dict)

    def add(self, seen: Judgement) -> None:
        late = {each.key for each in seen.ranks if each.inside is False}
        if seen.verdict not in (HangState.MOVES, HangState.WAITS) or not late:
            return
        if not any(each.inside for each in seen.ranks):
            return
        self.looks += 1
        self.ranks = max(self.ranks, len(seen.ranks))
        self.outside.update(late)
        self.names.update({each.key: each.rank for each in seen.ranks})

    def found(self) -> Straggler | None:
        if self.looks < LOOKS:
            return None
        share = self.outside.total() / (self.looks * self.ranks)
        late = [key for key, times in self.outside.items() if times >= OFTEN * self.looks]
        if len(late) != 1 or self.ranks * _tail(self.looks, self.outside[late[0]], share) > CHANCE:
            return None
        (host, pid) = late[0]
        return Straggler(self.names[late[0]], host, pid, self.outside[late[0]], self.looks)


def _tail(number: int, least: int, share: float) -> float:
    """The probability of at least `least` successes in `number` trials, each with the probability `share`."""
    chances = (comb(number, k) * share**k * (1 - share) ** (number - k) for k in range(least, number + 1))
    return sum(chances)
