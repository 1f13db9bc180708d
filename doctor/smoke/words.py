"""What an agent of the smoke run says: one JSON line each, decoded with types.

A host is hostile until proved otherwise: numbers and texts are bounded, and what is no answer is noise.
"""

from __future__ import annotations

from typing import Annotated

import msgspec

from doctor.smoke.onhost.page import DTYPES, GROUPS, OPS, PHASES
from doctor.smoke.result import Count, Event, Sample, Seconds, Text

Index = Annotated[int, msgspec.Meta(ge=0, le=64)]
Number = Annotated[int, msgspec.Meta(ge=0, le=1_000_000)]


Pid = Annotated[int, msgspec.Meta(ge=0, le=2**22)]


class Say(msgspec.Struct, frozen=True, tag_field="say"):
    pass


class Ready(Say, frozen=True, tag="ready"):
    python: Text = ""
    cores: Number = 0
    load: Seconds = 0.0


class Imported(Say, frozen=True, tag="imported"):
    seconds: Seconds
    path: Text = ""
    torch: Text = ""


class Trouble(Say, frozen=True, tag="trouble"):
    text: Text


class Store(Say, frozen=True, tag="store"):
    port: Annotated[int, msgspec.Meta(ge=1, le=65535)]


class Spawned(Say, frozen=True, tag="spawned"):
    pids: dict[str, Pid]


class Told(Say, frozen=True, tag="event"):
    rank: Number
    event: Event


class PageLine(msgspec.Struct, frozen=True):
    """One rank's page as read by its agent, fields in the order of `Page.FIELDS`."""

    rank: Number
    page: tuple[Count, Count, Index, Number, Number, Index, Count, Index, Index, Count, Index]
    still: Seconds = 0.0
    state: Annotated[str, msgspec.Meta(max_length=4)] = ""
    cpu: Seconds = 0.0
    disturbed: Seconds | None = None


class Pages(Say, frozen=True, tag="pages"):
    ranks: tuple[PageLine, ...]
    id: Number | None = None
    gap: Seconds = 0.0
    quiet: Seconds = 0.0


class Exited(Say, frozen=True, tag="exit"):
    """`last` is the page as the rank left it."""

    rank: Number
    last: PageLine | None = None
    code: Annotated[int, msgspec.Meta(ge=-1, le=255)] | None = None
    signal: Annotated[int, msgspec.Meta(ge=0, le=128)] | None = None
    words: Text = ""


class Stacks(Say, frozen=True, tag="stacks"):
    stacks: dict[str, Text]


class Dns(Say, frozen=True, tag="dns"):
    seconds: Seconds | None = None


class Memory(Say, frozen=True, tag="memory"):
    peak: Count


class Bye(Say, frozen=True, tag="bye"):
    pass


Said = Ready | Imported | Trouble | Store | Spawned | Told | Pages | Exited | Stacks | Dns | Memory | Bye
_DECODER: msgspec.json.Decoder[Said] = msgspec.json.Decoder(Said)


def parse(line: bytes) -> Said | None:
    """None for anything that is not such a line."""
    try:
        return _DECODER.decode(line)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        return None


def sample(line: PageLine) -> Sample | None:
    """The page in words; None when it holds a number that no rank of ours would write."""
    version, _, phase, step, position, group, seq, op, dtype, size, inside = line.page
    try:
        return Sample(
            version=version,
            phase=PHASES[phase],  # type: ignore[arg-type]  # the same words, as a Literal
            step=step,
            position=position,
            group=GROUPS[group],
            seq=seq,
            op=OPS[op],
            dtype=DTYPES[dtype],
            bytes=size,
            inside=bool(inside),
            still=line.still,
        )
    except IndexError:
        return None
