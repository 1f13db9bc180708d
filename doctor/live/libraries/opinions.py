"""What libraries report about a job that stands still: one opinion each, with its trust.

An opinion never decides alone. It confirms or contradicts what the processes show, and the report says which.
"""

from enum import Enum
from typing import Annotated, TypeVar

import msgspec

from doctor.live.evidence import Pid, Rank, Text, Word

T = TypeVar("T")


class Source(str, Enum):
    RAS = "nccl-ras"
    RECORDER = "flight-recorder"
    TORCH_NPU = "torch_npu-status"
    HEARTBEAT = "hccl-heartbeat"
    SCHEDULER = "mindspore-scheduler"

    @property
    def label(self) -> str:
        return _TITLES[self]


_TITLES = {
    Source.RAS: "NCCL RAS",
    Source.RECORDER: "the flight recorder",
    Source.TORCH_NPU: "torch_npu's status",
    Source.HEARTBEAT: "HCCL's heartbeat",
    Source.SCHEDULER: "MindSpore's scheduler",
}


class Trust(str, Enum):
    STRONG = "strong"
    """The source counts operations or has lost a process, so it is right unless the library has a bug."""
    VOTE = "vote"
    """The opinion fits what the source reports, but other explanations fit as well."""


class OpinionKind(str, Enum):
    BLAMES = "blames"
    """`subjects` keep the others waiting."""
    MISMATCH = "mismatch"
    """`subjects` disagree on the next operation. Which of them is wrong is unknown."""
    LAUNCHED = "all launched"
    """Every rank has entered the same operation: the device or the network does not finish it."""
    MOVES = "moves"
    SILENT = "silent"
    """It was asked, but its answer cannot be used; `words` says why."""


class Subject(msgspec.Struct, frozen=True, kw_only=True):
    """A rank, or a process or device whose rank is unknown."""

    rank: Rank | None = None
    host: Word = ""
    """The host's name as the user gave it, or the library's name for a host that was not asked."""
    pid: Pid | None = None
    device: Word = ""

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
    kind: OpinionKind
    words: Text
    """One sentence."""
    subjects: Annotated[tuple[Subject, ...], msgspec.Meta(max_length=64)] = ()
    more: int = 0
    """How many further subjects were left out."""
    evidence: Annotated[tuple[Text, ...], msgspec.Meta(max_length=16)] = ()
    against: tuple[Text, ...] = ()
    """Opinions that contradict this one, a sentence each."""

    @property
    def ranks(self) -> set[int]:
        return {each.rank for each in self.subjects if each.rank is not None}


def decoded(text: str, form: type[T]) -> T | str:
    """What a library wrote as JSON, or why it cannot be used."""
    try:
        return msgspec.json.decode(text, type=form, strict=False)
    except (msgspec.DecodeError, RecursionError) as error:
        return f"its JSON is cut off or has an unknown form ({str(error)[:120]})"


def silent(source: Source, words: str) -> Opinion:
    return Opinion(source=source, trust=Trust.VOTE, kind=OpinionKind.SILENT, words=words)


def blames(
    source: Source, trust: Trust, words: str, subjects: tuple[Subject, ...], evidence: tuple[str, ...] = ()
) -> Opinion:
    kind = OpinionKind.BLAMES
    return Opinion(source=source, trust=trust, kind=kind, words=words, subjects=subjects, evidence=evidence)
