"""What libraries and device tools say of a job that stands still: an opinion each, with its trust.

An opinion never decides alone. It confirms what the processes show, or contradicts it, and then the report
says so.
"""

from __future__ import annotations

from enum import Enum
from typing import Annotated

import msgspec

from doctor.hang.evidence import Pid, Rank, Seconds, Text, Word


class Source(str, Enum):
    RAS = "nccl-ras"
    RECORDER = "flight-recorder"
    TORCH_NPU = "torch_npu-status"
    HEARTBEAT = "hccl-heartbeat"
    SCHEDULER = "mindspore-scheduler"
    UTILISATION = "utilisation"

    @property
    def label(self) -> str:
        return _TITLES[self]


_TITLES = {
    Source.RAS: "NCCL RAS",
    Source.RECORDER: "the flight recorder",
    Source.TORCH_NPU: "torch_npu's status",
    Source.HEARTBEAT: "HCCL's heartbeat",
    Source.SCHEDULER: "MindSpore's scheduler",
    Source.UTILISATION: "the devices' utilisation",
}


class Trust(str, Enum):
    STRONG = "strong"
    """It counts operations, or has lost a process: right unless the library errs."""
    VOTE = "vote"
    """It fits, and so may other things."""


class Kind(str, Enum):
    BLAMES = "blames"
    """`subjects` keep the others waiting."""
    MISMATCH = "mismatch"
    """`subjects` disagree on what comes next; which of them is wrong, nobody knows."""
    LAUNCHED = "all launched"
    """Every rank has entered the same operation: the device or the network does not finish it."""
    MOVES = "moves"
    SILENT = "silent"
    """It was asked, and what it said cannot be used; `words` say why."""


class State(str, Enum):
    BEHIND = "behind"
    DEAD = "dead"
    UNRESPONSIVE = "unresponsive"
    IDLE = "idle"
    """Its device has no work."""
    FAULT = "fault"
    """Its device or link reports an error."""


class Subject(msgspec.Struct, frozen=True, kw_only=True):
    """A rank, or a process or device of which nobody can tell which rank it has."""

    rank: Rank | None = None
    host: Word = ""
    """As the person named it; where it is none of the hosts that were asked, what the library calls it."""
    pid: Pid | None = None
    device: Word = ""
    state: State = State.BEHIND

    @property
    def key(self) -> tuple[object, ...]:
        return (self.rank,) if self.rank is not None else (self.host, self.pid, self.device)

    def __str__(self) -> str:
        parts = [f"rank {self.rank}"] if self.rank is not None else []
        if self.rank is None and self.pid is not None:
            parts.append(f"process {self.pid}")
        if self.device and self.rank is None:
            parts.append(f"device {self.device}")
        return " of ".join([", ".join(parts), self.host] if self.host and parts else parts) or self.host


class Opinion(msgspec.Struct, frozen=True, kw_only=True):
    source: Source
    trust: Trust
    kind: Kind
    words: Text
    """One sentence."""
    subjects: Annotated[tuple[Subject, ...], msgspec.Meta(max_length=64)] = ()
    more: int = 0
    """Subjects beyond these."""
    evidence: Annotated[tuple[Text, ...], msgspec.Meta(max_length=16)] = ()
    at: Seconds = 0.0
    """When it was said, if that may be long ago, by the clock of the host that said it."""
    against: tuple[Text, ...] = ()
    """Other opinions that cannot be true beside this one, a sentence each."""

    @property
    def ranks(self) -> set[int]:
        return {each.rank for each in self.subjects if each.rank is not None}
