"""The messages between ranks, besides the bytes of programs. An invalid message ends the link."""

from typing import Annotated

import msgspec

from doctor.job.launch.variables import LONGEST
from doctor.transport.question import Question

BEAT = 2.0
"""Seconds between signs of life."""
SILENT = 10.0
"""Seconds of silence after which a rank is considered lost."""
SLEPT = 4.0
"""Seconds. If we ourselves paused for this long, silence proves nothing against others."""
UNREADABLE = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)
"""What reading an invalid message raises: msgspec lets Python's own errors through."""

Text = Annotated[str, msgspec.Meta(max_length=400)]
Natural = Annotated[int, msgspec.Meta(ge=0, le=2**53)]
Value = Annotated[str, msgspec.Meta(max_length=2 * LONGEST)]
Variables = Annotated[dict[Text, Value], msgspec.Meta(max_length=400)]
Lines = Annotated[list[Text], msgspec.Meta(max_length=20)]


class Hello(msgspec.Struct, tag_field="do", tag="hello", frozen=True):
    """`machine` tells hosts of the same name apart; `sure`: the listener is known to be its own user's."""

    rank: Natural
    world: Natural
    host: Text
    machine: Text
    pid: Natural
    parent: Natural
    began: Natural
    version: Text
    env: Variables = {}
    sure: bool = False


class Beat(msgspec.Struct, tag_field="do", tag="beat", frozen=True):
    pass


class BeatAnswer(msgspec.Struct, tag_field="do", tag="here", frozen=True):
    serial: Natural


class ProcessState(msgspec.Struct, tag_field="do", tag="seen", frozen=True):
    serial: Natural
    pid: Natural
    state: Text


class ProgramEnded(msgspec.Struct, tag_field="do", tag="ended", frozen=True):
    number: Natural
    rc: Annotated[int, msgspec.Meta(ge=-255, le=511)] | None


class VerdictReceipt(msgspec.Struct, tag_field="do", tag="taken", frozen=True):
    """Confirms that the verdict has arrived."""


FromMember = Hello | Beat | BeatAnswer | ProcessState | ProgramEnded | VerdictReceipt


class Welcome(msgspec.Struct, tag_field="do", tag="welcome", frozen=True):
    """Admits a rank; it holds rank 0's own place."""

    host: Text
    machine: Text
    pid: Natural
    began: Natural


class RollCall(msgspec.Struct, tag_field="do", tag="call", frozen=True):
    serial: Natural


class StateQuestion(msgspec.Struct, tag_field="do", tag="look", frozen=True):
    """Asks for the state of a process."""

    serial: Natural
    pid: Natural
    began: Natural


class Find(msgspec.Struct, tag_field="do", tag="find", frozen=True):
    """Asks whether a rank that has not come runs there."""

    serial: Natural
    rank: Natural


class StartProgram(msgspec.Struct, tag_field="do", tag="start", frozen=True):
    """Asks a rank to run a program. It carries a question, not a command: the rank builds the program."""

    number: Natural
    question: Question


class HangUp(msgspec.Struct, tag_field="do", tag="hangup", frozen=True):
    number: Natural


class EndProgram(msgspec.Struct, tag_field="do", tag="end", frozen=True):
    number: Natural


class RunVerdict(msgspec.Struct, tag_field="do", tag="verdict", frozen=True):
    code: Annotated[int, msgspec.Meta(ge=0, le=255)]
    words: Lines = []


FromHead = Welcome | Beat | RollCall | StateQuestion | Find | StartProgram | HangUp | EndProgram | RunVerdict

MEMBER: msgspec.json.Decoder[FromMember] = msgspec.json.Decoder(FromMember)
HEAD: msgspec.json.Decoder[FromHead] = msgspec.json.Decoder(FromHead)
