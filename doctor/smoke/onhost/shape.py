"""The shape of a run: how many ranks, how they are grouped, and what they do."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import NamedTuple

ORDER = "tp-cp-ep-dp-pp"
"""Megatron's order of the ranks: those of a tensor-parallel group are neighbours, stages are far apart."""


class CellShape(NamedTuple):
    """One cell of ranks that train together; their numbers count along the axes in `order`. The job's cp and
    ep divide the replicas; so does pp if the model is not cut.
    """

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

    pp: int = 1
    cp: int = 1
    ep: int = 1
    micro: int = 0
    """The model is cut in `pp` stages, and a batch in so many parts, which go through them. 0: it is not."""
    sweep: float = 0.0
    """In an acceptance test: for how many seconds collectives are timed by size. 0 in a smoke run."""
    order: str = ORDER
    paths: tuple[str, ...] = ()
    """In an acceptance test: the folders in which each host stores something."""
    vpp: int = 1
    """Each rank of a pipeline holds so many stages of the model: every `pp`-th of `pp * vpp`."""
    zero: int = 0
    """ZeRO's stage: each replica updates a shard of the parameters with its shard of the summed gradients. In
    stage 3 all parameters are gathered once more before the backward pass.
    """
    ps: int = 0
    """1: the first replica is the parameter server. All push gradients to it and pull what it updates."""
    pairs_at_once: int = 0
    """In an acceptance test: how many pairs of hosts send at the same time. 0: all of a round."""

    @property
    def stages(self) -> int:
        return self.pp if self.micro else 1

    @property
    def groups(self) -> tuple[str, ...]:
        """The groups that are formed."""
        of_job = (name for name in ("cp", "ep", "pp", "embedding") if self.size(name) > 1)
        timed = ("intra", "inter") if self.sweep and len(self.hosts) > 1 and max(self.hosts) > 1 else ()
        return ("world", "tp", *timed) if self.dp_in_world else ("world", "tp", "dp", *of_job, *timed)

    @property
    def sums_in(self) -> str:
        """The group that sums the gradients of the replicas."""
        return "world" if self.dp_in_world else "dp"

    @property
    def world(self) -> int:
        return self.dp * self.tp * self.stages

    def dp_of(self, rank: int) -> int:
        return self._along(self._of_replicas, rank)

    def tp_of(self, rank: int) -> int:
        return self._along(("tp",), rank)

    def stage_of(self, rank: int) -> int:
        return self._along(("pp",), rank) if self.micro else 0

    @property
    def _of_replicas(self) -> tuple[str, ...]:
        return ("cp", "dp") if self.micro else ("cp", "dp", "pp")

    def _along(self, names: tuple[str, ...], rank: int) -> int:
        """The number of a rank among those that differ from it along these axes only."""
        found, before = 0, 1
        for name, (size, apart) in _axes(self).items():
            if name in names:
                found += rank // apart % size * before
                before *= size
        return found

    @property
    def parts(self) -> int:
        """The number of ranks that hold one copy of the model together."""
        return self.tp * self.stages

    def replica(self, dp: int) -> list[int]:
        """The places that hold one copy of the model together."""
        return [place for place in range(self.world) if self.dp_of(place) == dp]

    def part_of(self, rank: int) -> int:
        """Which part of the model a rank holds."""
        return self.stage_of(rank) * self.tp + self.tp_of(rank)

    def size(self, group: str) -> int:
        """The members of a group; 1 for those that only some ranks form."""
        ends = 2 if self.stages > 1 else 1
        return {"world": self.world, "dp": self.dp, "embedding": ends}.get(group, getattr(self, group, 1))

    @property
    def firsts(self) -> list[int]:
        """The first rank of each host."""
        return [sum(self.hosts[:host]) for host in range(len(self.hosts))]

    def members(self, group: str, rank: int) -> list[int]:
        """The ranks of the group of that name that contains this rank."""
        if group == "world":
            return list(range(self.world))
        if group == "inter":
            return self.firsts if rank in self.firsts else [rank]
        if group == "intra":
            host = self.host_of(rank)
            return list(range(self.firsts[host], self.firsts[host] + self.hosts[host]))
        if group == "embedding":  # the first and the last stage both hold it
            ends = self.members("pp", rank)[:: self.stages - 1] if self.stages > 1 else []
            return ends if rank in ends else [rank]
        names = self._of_replicas if group == "dp" else (group,)
        axes = [axis for name, axis in _axes(self, experts=group == "ep").items() if name in names]
        found = [rank - sum(rank // apart % size * apart for size, apart in axes)]
        for size, apart in axes:
            found = [place + step * apart for step in range(size) for place in found]
        return found

    @property
    def formed(self) -> int:
        """How many groups all ranks form together."""
        every = ((name, *self.members(name, rank)) for name in self.groups for rank in range(self.world))
        return len({group for group in every if len(group) > 2})

    def host_of(self, rank: int) -> int:
        """The number of the rank's host in the cell."""
        for number, ranks in enumerate(self.hosts):
            if rank < ranks:
                return number
            rank -= ranks
        raise ValueError("no such rank")


@lru_cache(maxsize=1024)
def _axes(shape: CellShape, experts: bool = False) -> dict[str, tuple[int, int]]:
    """Axis -> how many ranks lie along it, and how far apart they are. Experts divide the replicas anew."""
    sizes = {"tp": shape.tp, "pp": shape.pp}
    sizes.update(cp=1 if experts else shape.cp, ep=shape.ep if experts else 1)
    sizes["dp"] = shape.world // math.prod(sizes.values())
    found, apart = {}, 1
    for name in shape.order.split("-"):
        found[name] = (sizes[name], apart)
        apart *= sizes[name]
    return found


class CollectiveCall(NamedTuple):
    """One collective as a rank enters it."""

    step: int
    group: str
    op: str
    dtype: str
    bytes: int
    members: tuple[int, ...] = ()
    """The two ranks of a pair; empty for any other group, whose name is enough."""
    end: int = -1
    """The place of the root or of the peer, as the page shows it; -1 if it has none."""
    tag: int = 0


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
