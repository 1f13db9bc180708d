"""Who is late again and again in a job that goes on: said only where it is no accident, and no accusation."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from math import comb

from doctor.hang.judge.judgement import Judgement, Straggler, Verdict
from doctor.hang.judge.wires import Key

LOOKS = 5
"""Fewer say nothing."""
OFTEN = 0.8
"""Of the looks."""
CHANCE = 0.001
"""That the most frequent of ranks that are all alike is outside as often."""


@dataclass(slots=True)
class Stragglers:
    """What looks at one job showed. Those in which nobody waits for anybody do not count."""

    looks: int = 0
    ranks: int = 0
    outside: Counter[Key] = field(default_factory=Counter)
    names: dict[Key, int | None] = field(default_factory=dict)

    def add(self, seen: Judgement) -> None:
        late = {each.key for each in seen.ranks if each.inside is False}
        if seen.verdict not in (Verdict.MOVES, Verdict.WAITS) or not late:
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
    """How likely at least so many of them are, if each has this chance."""
    chances = (comb(number, k) * share**k * (1 - share) ** (number - k) for k in range(least, number + 1))
    return sum(chances)
