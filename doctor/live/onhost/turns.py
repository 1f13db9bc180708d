"""Whose item is next, so that no owner's items delay those of others. Pure."""

import heapq
from collections import deque
from collections.abc import Sequence
from typing import Any


class OwnerTurns:
    """Decides whose item is next: one of the owner whose items have taken the least time so far."""

    def __init__(self, owners: "Sequence[Any]") -> None:
        self.waiting = {}  # type: dict[Any, deque[int]]
        for at, owner in enumerate(owners):
            self.waiting.setdefault(owner, deque()).append(at)
        self.taken = [(0.0, place, owner) for place, owner in enumerate(self.waiting)]

    def next(self) -> "int | None":
        """The index of the next item; None if nothing is left."""
        return self.waiting[self.taken[0][2]][0] if self.taken else None

    def over(self, seconds: float) -> None:
        """The item that was next is done and took this number of seconds."""
        taken, place, owner = self.taken[0]
        self.waiting[owner].popleft()
        if self.waiting[owner]:
            heapq.heapreplace(self.taken, (taken + seconds, place, owner))
        else:
            heapq.heappop(self.taken)

    def give_up(self) -> "list[int]":
        """Drop all items of the owner of the next item, and return their indices."""
        return [*self.waiting[heapq.heappop(self.taken)[2]]] if self.taken else []
