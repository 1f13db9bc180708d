"""The messages that an agent of `doctor hang` sends."""

from typing import Annotated, Literal

import msgspec

from doctor.agents.session import Message, decoder_of
from doctor.live import evidence

Texts = Annotated[tuple[evidence.Text, ...], msgspec.Meta(max_length=64)]


class MemberMessage(Message, frozen=True, tag="member"):
    member: evidence.JobMember


class MembersEnd(Message, frozen=True, tag="found"):
    """The search is over, and all members were sent."""

    ranks: evidence.Count
    machine: evidence.Word = ""
    memory: bool = False
    """Whether the host can run a program from memory."""
    unread: Texts = ()
    addresses: Annotated[tuple[evidence.Word, ...], msgspec.Meta(max_length=1_024)] = ()
    may_be: Annotated[tuple[evidence.Word, ...], msgspec.Meta(max_length=64)] = ()


class PySpyStatus(Message, frozen=True, tag="armed"):
    """py-spy has arrived, or could not be used."""

    problem: evidence.Word = ""


class LookMessage(Message, frozen=True, tag="look"):
    which: Literal["a", "between", "b"]
    look: evidence.Look


class LibraryMessage(Message, frozen=True, tag="library"):
    text: evidence.LibraryText


class RankNumbers(msgspec.Struct, frozen=True):
    """Rank and world size from the local variables of a process that has none in its environment."""

    pid: evidence.Pid
    rank: evidence.Rank | None = None
    local: evidence.Rank | None = None
    """Its number on its host."""
    world: evidence.Rank | None = None


class LooksEnd(evidence.HostLooks, frozen=True, kw_only=True, tag_field="say", tag="seen"):
    """The looks are over, and all of them were sent."""

    at: evidence.Seconds
    apart: evidence.Seconds
    told: Annotated[tuple[RankNumbers, ...], msgspec.Meta(max_length=20_000)] = ()


class Ends(Message, frozen=True, tag="ends"):
    """The answer about connections of ranks of other hosts."""

    ends: evidence.HostEnds


class ChildEnd(Message, frozen=True, tag="done"):
    """The agent's child has ended and sends nothing more."""

    what: Literal["find", "look", "ends", "sample"]


class Trouble(Message, frozen=True, tag="trouble"):
    text: evidence.Text = ""


LiveMessage = (
    MemberMessage
    | MembersEnd
    | PySpyStatus
    | LookMessage
    | LibraryMessage
    | LooksEnd
    | Ends
    | ChildEnd
    | Trouble
)
DECODER = decoder_of(LiveMessage)
