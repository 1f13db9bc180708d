"""The messages of an agent of `doctor hang`."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

from doctor.agents.session import Bye, Message, NoInterpreter
from doctor.hang.evidence import Connection, Count, LibraryText, Look, Member, Pid, Rank, Seconds, Text, Word

Texts = Annotated[tuple[Text, ...], msgspec.Meta(max_length=64)]


class MemberFound(Message, frozen=True, tag="member"):
    member: Member


class Found(Message, frozen=True, tag="found"):
    """All members were said."""

    ranks: Count
    machine: Word = ""
    memory: bool = False
    """Whether a program can be kept in memory only."""
    unread: Texts = ()


class Armed(Message, frozen=True, tag="armed"):
    """py-spy was taken, or why not."""

    problem: Word = ""


class Looked(Message, frozen=True, tag="look"):
    which: Literal["a", "between", "b"]
    look: Look


class Library(Message, frozen=True, tag="library"):
    text: LibraryText


class Told(msgspec.Struct, frozen=True):
    """Numbers among the locals of a rank that has none in its variables."""

    pid: Pid
    rank: Rank | None = None
    world: Rank | None = None


class Seen(Message, frozen=True, tag="seen"):
    """All looks were said."""

    at: Seconds
    apart: Seconds
    root: bool = False
    stacks: Word = ""
    ages: bool = True
    addresses: Annotated[tuple[Word, ...], msgspec.Meta(max_length=1_024)] = ()
    unread: Texts = ()
    loose: Annotated[tuple[Connection, ...], msgspec.Meta(max_length=1_024)] = ()
    told: Annotated[tuple[Told, ...], msgspec.Meta(max_length=20_000)] = ()


class Done(Message, frozen=True, tag="done"):
    """The agent's child has ended: what it has not said by now does not come."""

    what: Literal["find", "look"]


class Trouble(Message, frozen=True, tag="trouble"):
    text: Text = ""


HangMessage = MemberFound | Found | Armed | Looked | Library | Seen | Done | Trouble
DECODER: msgspec.json.Decoder[HangMessage | NoInterpreter | Bye] = msgspec.json.Decoder(
    HangMessage | NoInterpreter | Bye
)
