"""The shape of a run: how many ranks, how they are grouped, and what they do."""

from __future__ import annotations

from typing import NamedTuple


class CellShape(NamedTuple):
    """One cell of ranks that train together. A rank's number in its cell is dp * tp_size + tp."""

    dp: int
    tp: int
    hosts: tuple[int, ...]
    """The number of ranks on each host of the cell, in order: ranks of one host have neighbouring numbers."""
    steps: int
    seed: int
    backend: str = "gloo"
    dtypes: tuple[str, ...] = ()
    """The dtypes that the devices of the run can add up; () stands for all that the backend can."""
    dp_in_world: bool = False
    """HCCL cannot form groups of these replicas, so they sum their gradients in the world group, in slots."""
    waver_tries: int = 0
    """How often the training computes its first gradient, to see whether the devices give the same bits."""
    turns: int = 0
    """In an acceptance test: how often every pair of hosts sends, each way. 0 in a smoke run."""

    @property
    def groups(self) -> tuple[str, ...]:
        """The groups that are formed."""
        return ("world", "tp") if self.dp_in_world else ("world", "tp", "dp")

    @property
    def sums_in(self) -> str:
        """The group that sums the gradients of the replicas."""
        return "world" if self.dp_in_world else "dp"

    @property
    def world(self) -> int:
        return self.dp * self.tp

    def dp_of(self, rank: int) -> int:
        return rank // self.tp

    def tp_of(self, rank: int) -> int:
        return rank % self.tp

    def members(self, group: str, rank: int) -> list[int]:
        """The ranks of the group of that name that contains this rank; pairs are unknown here."""
        if group == "world":
            return list(range(self.world))
        if group == "tp":
            first = self.dp_of(rank) * self.tp
            return list(range(first, first + self.tp))
        if group == "dp":
            return list(range(self.tp_of(rank), self.world, self.tp))
        return [rank]

    def host_of(self, rank: int) -> int:
        """The number of the rank's host in the cell."""
        for number, ranks in enumerate(self.hosts):
            if rank < ranks:
                return number
            rank -= ranks
        raise ValueError("no such rank")


class CollectiveCall(NamedTuple):
    """One collective as a rank enters it."""

    step: int
    group: str
    op: str
    dtype: str
    bytes: int
    members: tuple[int, ...] = ()
    """The two ranks of a pair; empty for any other group, whose name is enough."""


class ScheduledCall(NamedTuple):
    """A call with its place in a rank's schedule; `position`, and `seq` in its group, count from 1."""

    position: int
    phase: str
    seq: int
    call: CollectiveCall


def numbered(phases: dict[str, list[CollectiveCall]]) -> list[ScheduledCall]:
    """The calls of all phases, in order, with their positions and their numbers in their groups."""
    entries: list[ScheduledCall] = []
    seq: dict[str, int] = {}
    for phase, calls in phases.items():
        for call in calls:
            seq[call.group] = seq.get(call.group, 0) + 1
            entries.append(ScheduledCall(len(entries) + 1, phase, seq[call.group], call))
    return entries
