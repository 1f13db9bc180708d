"""Lines that show which rank a process is, and how many ranks there are."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from doctor.text.hostprogram import table

TRIGGERS = (
    *(b"nranks ", b"rankNum[", b"need connect rankNum is [", b"rankSize[", b"ranks[", b"serrank["),
    *(b" rank[", b"(local_rank: ", b"[Gloo] Rank ", b"WORLD_SIZE", b"world_size", b"world size"),
    *(b" RankID:", b"GLOBAL_RANK: "),
)
"""At least one of these is in every such line."""
MOST_PIDS = 4096
MOST_SIZES = 100

_RANK, _WORLD, _GLOO = (re.compile("|".join(rows)) for _, *rows in table(__file__, "learn.txt"))
_MEMBER = re.compile(r"GLOBAL_RANK: (?P<rank>\d{1,6}), MEMBER: \d{1,6}/(?P<size>\d{1,6})")
"""What Lightning prints when it starts."""
_LOCAL = re.compile(r"rank {0,6}: (?P<rank>\d{1,6}) \(local_rank: (?P<local>\d{1,4})\)")


@dataclass(slots=True)
class FileFacts:
    """What the lines of one file show about its ranks."""

    rank_of: dict[int, int | None] = field(default_factory=dict)
    """Process -> its rank in the whole job; None if the lines name two."""
    rank_of_local: dict[int, int | None] = field(default_factory=dict)
    sizes: set[int] = field(default_factory=set)
    """The numbers of ranks that lines state."""
    talking: dict[int, set[int]] = field(default_factory=dict)
    """Size of a group -> its members that wrote lines here."""
    _of_size: dict[int, int] = field(default_factory=dict)

    def line(self, text: str, pid: int | None) -> None:
        if gloo := _GLOO.search(text):
            self._member(int(gloo["rank"]), int(gloo["peers"]) + 1)
        if member := _MEMBER.search(text):
            self._member(int(member["rank"]), int(member["size"]))
        local = _LOCAL.search(text)
        if local:
            self.local(int(local["local"]), int(local["rank"]))
        world = _WORLD.search(text)
        size = int(world[world.lastgroup or 0]) if world else 0
        self._sized(size)
        found = _RANK.search(text)
        if found and pid is not None:
            self.process(pid, int(found[found.lastgroup or 0]), size)

    def _member(self, rank: int, size: int) -> None:
        if self._sized(size):
            self.talking.setdefault(size, set()).add(rank)

    def _sized(self, size: int) -> bool:
        """Note the number of ranks of a group, unless there are too many groups."""
        if size > 0 and (size in self.sizes or len(self.sizes) < MOST_SIZES):
            self.sizes.add(size)
        return size in self.sizes

    def process(self, pid: int, rank: int | None, size: int = 0) -> None:
        """Note the rank of a process. The largest group counts: smaller groups number their own members."""
        if size < self._of_size.get(pid, 0) or (pid not in self.rank_of and len(self.rank_of) >= MOST_PIDS):
            return
        if size > self._of_size.get(pid, 0):
            self._of_size[pid] = size
            self.rank_of[pid] = rank
        elif self.rank_of.setdefault(pid, rank) != rank:
            self.rank_of[pid] = None

    def local(self, local: int, rank: int | None) -> None:
        if self.rank_of_local.setdefault(local, rank) != rank:
            self.rank_of_local[local] = None

    def add(self, other: FileFacts) -> None:
        """Add what a later part of the file shows."""
        self.sizes |= other.sizes
        for size, ranks in other.talking.items():
            self.talking.setdefault(size, set()).update(ranks)
        for local, rank in other.rank_of_local.items():
            self.local(local, rank)
        for pid, rank in other.rank_of.items():
            self.process(pid, rank, other._of_size.get(pid, 0))

    @property
    def ranks(self) -> set[int]:
        """The ranks that are known to have written here, as numbered in the largest group."""
        told = self.talking.get(self.world or 0, set())
        return told | {rank for rank in self.rank_of.values() if rank is not None}

    @property
    def world(self) -> int | None:
        """The largest number of ranks that a line states: subgroups are smaller."""
        return max(self.sizes, default=None)
