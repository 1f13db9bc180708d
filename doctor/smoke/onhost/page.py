"""Progress pages: where each rank is, in memory that it shares with the agent of its host.

A page has one writer, the rank, and one reader, the agent. It needs no lock and survives the writer's death,
even by SIGKILL. Its version is odd while it is being written.
"""

import os
import struct
import time
from mmap import mmap
from operator import attrgetter
from typing import Any

PHASES = ("spawned", "start", "ready", "join", "collectives", "train", "audit", "bandwidth", "done")
JOINING = ("connecting to the store", "meeting its peers", "forming its groups", "trying its groups")
"""The steps of the join phase."""
GROUPS = ("none", "world", "tp", "dp", "pair", "cp", "ep", "pp", "embedding", "intra", "inter")
OPS = (
    *("none", "all_reduce", "all_reduce_max", "broadcast", "reduce", "all_gather", "reduce_scatter"),
    *("all_to_all", "exchange", "barrier", "send_forward", "recv_forward", "send_backward", "recv_backward"),
    *("send_forward_recv_backward", "send_backward_recv_forward", "send_recv"),
)
DTYPES = (
    *("none", "float32", "float64", "float16", "bfloat16", "int64", "int32", "int16", "int8", "uint8"),
    *("bool", "complex64"),
)
SIZE = 256
_FORM = struct.Struct("<QiiiIIIIIQIIQIdd")


class RankPage:
    """One rank's page; see `FIELDS` for what `read` returns."""

    FIELDS = (
        "version",  # grows with every mark; odd: being written
        "pid",
        "phase",  # index into PHASES
        "step",  # of the training, or of joining (JOINING); 0 elsewhere
        "position",  # collectives entered so far, over all groups: the next one has the index `position`
        "group",  # index into GROUPS: the collective entered last
        "seq",  # its number in that group, from 1
        "op",
        "dtype",
        "bytes",
        "end",  # the place of its root or of its peer, from 1; 0 if it has none
        "tag",
        "about",  # the sum of `about` over all calls so far: a call may end before its message arrives
        "inside",  # 1 between entering it and leaving it
        "moved",  # time.monotonic() of the host, at the last mark
        "disturbed",  # time.monotonic() when a fault was injected on purpose, 0.0 if none was
    )

    def __init__(self, memory: "mmap", index: int) -> None:
        self.memory = memory
        self.offset = index * SIZE
        self.version = 0
        self.pid = os.getpid()
        self.phase = self.step = self.position = 0
        self.group = self.seq = self.op = self.dtype = self.bytes = self.end = self.tag = self.inside = 0
        self.about = 0
        self.disturbed = 0.0

    def mark(self) -> None:
        """Write the current values of the fields to the page."""
        self.version += 2
        struct.pack_into("<Q", self.memory, self.offset, self.version - 1)
        times = time.monotonic(), self.disturbed
        _FORM.pack_into(self.memory, self.offset, self.version - 1, *_FIELDS(self), *times)
        struct.pack_into("<Q", self.memory, self.offset, self.version)

    def enter_phase(self, name: str, step: int = 0) -> None:
        self.phase, self.step, self.inside = PHASES.index(name), step, 0
        self.mark()

    def enter(
        self, group: str, seq: int, op: str, dtype: str, size: int, end: int = -1, tag: int = 0
    ) -> None:
        """The rank is about to call a collective."""
        self.position += 1
        self.group, self.seq = GROUPS.index(group), seq
        self.op, self.dtype, self.bytes = OPS.index(op), DTYPES.index(dtype), size
        self.end, self.tag = end + 1, tag
        self.about += about(end, tag)
        self.inside = 1
        self.mark()

    def leave(self) -> None:
        self.inside = 0
        self.mark()

    def disturb(self) -> None:
        """Note that a fault is injected from now on."""
        if not self.disturbed:
            self.disturbed = time.monotonic()
            self.mark()


_FIELDS = attrgetter(*RankPage.FIELDS[1:-2])


def about(end: int, tag: int) -> int:
    """One number for the root or peer of a call, and its tag."""
    return 256 * (end + 1) + tag


def read(memory: "mmap", index: int) -> "tuple[Any, ...]":
    """The fields of a page. If it is being written, the last of several attempts, with an odd version."""
    values = _FORM.unpack_from(memory, index * SIZE)
    for _ in range(5):
        again = _FORM.unpack_from(memory, index * SIZE)
        if again == values and not values[0] % 2:
            break
        values = again
    return values
