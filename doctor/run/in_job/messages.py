"""What ranks say to each other, beside the bytes of programs. Decoded with types; nonsense ends the link."""

from __future__ import annotations

from typing import Annotated

import msgspec

Text = Annotated[str, msgspec.Meta(max_length=400)]
Command = Annotated[str, msgspec.Meta(max_length=900_000)]
Count = Annotated[int, msgspec.Meta(ge=0, le=2**53)]
Value = Annotated[str, msgspec.Meta(max_length=1200)]
Variables = Annotated[dict[Text, Value], msgspec.Meta(max_length=400)]
Words = Annotated[list[Text], msgspec.Meta(max_length=20)]


class Hello(msgspec.Struct, tag_field="do", tag="hello", frozen=True):
    """A rank comes. `machine` tells hosts of one name apart."""

    rank: Count
    world: Count
    host: Text
    machine: Text
    pid: Count
    parent: Count
    began: Count
    version: Text
    local_world: Count | None = None
    env: Variables = {}


class Beat(msgspec.Struct, tag_field="do", tag="beat", frozen=True):
    pass


class Here(msgspec.Struct, tag_field="do", tag="here", frozen=True):
    serial: Count


class Seen(msgspec.Struct, tag_field="do", tag="seen", frozen=True):
    serial: Count
    pid: Count
    state: Text


class Failed(msgspec.Struct, tag_field="do", tag="failed", frozen=True):
    number: Count
    text: Text


class Ended(msgspec.Struct, tag_field="do", tag="ended", frozen=True):
    number: Count
    rc: Annotated[int, msgspec.Meta(ge=-255, le=511)] | None


class Taken(msgspec.Struct, tag_field="do", tag="taken", frozen=True):
    """The verdict has come."""


FromMember = Hello | Beat | Here | Seen | Failed | Ended | Taken


class Welcome(msgspec.Struct, tag_field="do", tag="welcome", frozen=True):
    """Rank 0's own place."""

    host: Text
    machine: Text
    pid: Count
    began: Count


class Call(msgspec.Struct, tag_field="do", tag="call", frozen=True):
    serial: Count


class Look(msgspec.Struct, tag_field="do", tag="look", frozen=True):
    """What state a process is in."""

    serial: Count
    pid: Count
    began: Count


class Find(msgspec.Struct, tag_field="do", tag="find", frozen=True):
    """Whether a rank that has not come runs there."""

    serial: Count
    rank: Count


class Start(msgspec.Struct, tag_field="do", tag="start", frozen=True):
    number: Count
    command: Command


class HangUp(msgspec.Struct, tag_field="do", tag="hangup", frozen=True):
    number: Count


class End(msgspec.Struct, tag_field="do", tag="end", frozen=True):
    number: Count


class Verdict(msgspec.Struct, tag_field="do", tag="verdict", frozen=True):
    code: Annotated[int, msgspec.Meta(ge=0, le=255)]
    words: Words = []


FromHead = Welcome | Beat | Call | Look | Find | Start | HangUp | End | Verdict

_MEMBER: msgspec.json.Decoder[FromMember] = msgspec.json.Decoder(FromMember)
_HEAD: msgspec.json.Decoder[FromHead] = msgspec.json.Decoder(FromHead)


def from_member(payload: bytes) -> FromMember:
    return _MEMBER.decode(payload)


def from_head(payload: bytes) -> FromHead:
    return _HEAD.decode(payload)
