"""The messages of a smoke run's agent, with bounds (a host may be hostile), and the commands for it."""

from typing import Annotated

import msgspec
from msgspec.structs import replace

from doctor.agents.session import Message, decoder_of
from doctor.smoke.events import BackendEvidence, Count, Error, Event, Phase, Seconds, Text
from doctor.smoke.onhost.connections import MOST
from doctor.smoke.onhost.page import DTYPES, GROUPS, OPS, PHASES
from doctor.smoke.onhost.shape import CellShape
from doctor.smoke.result import Injection, Sample
from doctor.text.redact import redact

Index = Annotated[int, msgspec.Meta(ge=0, le=64)]
Number = Annotated[int, msgspec.Meta(ge=0, le=1_000_000)]
ConnectionEnds = Annotated[
    tuple[Annotated[str, msgspec.Meta(pattern="^[0-9A-F:]{13,37} [0-9A-F:]{13,37}$")], ...],
    msgspec.Meta(max_length=MOST),
]
Pid = Annotated[int, msgspec.Meta(ge=0, le=2**22)]


class SmokeAgentReady(Message, frozen=True, tag="ready"):
    python: Text = ""
    cores: Number = 0
    load: Seconds = 0.0


class FrameworkImport(Message, frozen=True, tag="imported"):
    path: Text = ""
    version: Text = ""


class AgentTrouble(Message, frozen=True, tag="trouble"):
    text: Text


class Store(Message, frozen=True, tag="store"):
    """The port at which the ranks of a cell meet, or those of all cells."""

    port: Annotated[int, msgspec.Meta(ge=1, le=65535)]
    cell: Number | None = None


class RankPids(Message, frozen=True, tag="spawned"):
    pids: dict[str, Pid]


class AgentLine(Message, frozen=True, tag="event"):
    rank: Number
    event: Event


class PageLine(msgspec.Struct, frozen=True):
    """One rank's page as read by its agent, fields in the order of `Page.FIELDS`."""

    rank: Number
    page: tuple[
        Count, Count, Index, Number, Number, Index, Count, Index, Index, Count, Number, Number, Count, Index
    ]
    still: Seconds = 0.0
    state: Annotated[str, msgspec.Meta(max_length=4)] = ""
    cpu: Seconds = 0.0
    disturbed: Seconds | None = None


class Pages(Message, frozen=True, tag="pages"):
    ranks: tuple[PageLine, ...]
    id: Number | None = None
    gap: Seconds = 0.0
    quiet: Seconds = 0.0


class RankExit(Message, frozen=True, tag="exit"):
    """`last` is the page as the rank left it."""

    rank: Number
    last: PageLine | None = None
    code: Annotated[int, msgspec.Meta(ge=-1, le=255)] | None = None
    signal: Annotated[int, msgspec.Meta(ge=0, le=128)] | None = None
    words: Text = ""


class StackTexts(Message, frozen=True, tag="stacks"):
    """`kept` and `broken`: the connections that its ranks had before."""

    stacks: dict[str, Text]
    kept: ConnectionEnds = ()
    broken: ConnectionEnds = ()


class Dns(Message, frozen=True, tag="dns"):
    seconds: Seconds | None = None


class RankMemory(Message, frozen=True, tag="memory"):
    peak: Count


SmokeMessage = (
    SmokeAgentReady
    | FrameworkImport
    | AgentTrouble
    | Store
    | RankPids
    | AgentLine
    | Pages
    | RankExit
    | StackTexts
    | Dns
    | RankMemory
)
DECODER = decoder_of(SmokeMessage)


def redacted(said: SmokeMessage) -> SmokeMessage:
    """The message without what looks like a secret, in every text that is not our own."""
    if isinstance(said, AgentLine):
        return replace(said, event=_redacted(said.event))
    if isinstance(said, RankExit):
        return replace(said, words=redact(said.words))
    if isinstance(said, StackTexts):
        return replace(said, stacks={rank: redact(stack) for rank, stack in said.stacks.items()})
    return replace(said, text=redact(said.text)) if isinstance(said, AgentTrouble) else said


def _redacted(event: Event) -> Event:
    if isinstance(event, Error):
        return replace(event, text=redact(event.text), trace=redact(event.trace))
    return replace(event, text=redact(event.text)) if isinstance(event, BackendEvidence) else event


class AgentCommand(msgspec.Struct, frozen=True, tag_field="do", forbid_unknown_fields=True):
    """A command to an agent: one JSON line."""


class SeatCommand(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """See SmokeSeat."""

    place: int
    local: int
    device: int | None
    rank: int


class StartCommand(AgentCommand, frozen=True, tag="start"):
    """Start these ranks, all of one cell."""

    ranks: tuple[SeatCommand, ...]
    cell: int
    shape: CellShape
    python: str | None
    env: dict[str, str]
    timeout: float
    inject: tuple[Injection, ...]
    """Each with a place of the cell as its rank."""
    address: str
    head: str
    store: bool
    lease: float
    framework: str = "torch"
    worlds: tuple[int, ...] = ()
    """The number of ranks of each cell."""


class JoinCommand(AgentCommand, frozen=True, tag="join"):
    address: str
    port: int


class LookCommand(AgentCommand, frozen=True, tag="look"):
    id: int


class StacksCommand(AgentCommand, frozen=True, tag="stacks"):
    pass


class BeatCommand(AgentCommand, frozen=True, tag="beat"):
    pass


class StopCommand(AgentCommand, frozen=True, tag="stop"):
    pass


AnyCommand = StartCommand | JoinCommand | LookCommand | StacksCommand | BeatCommand | StopCommand
COMMANDS: msgspec.json.Decoder[AnyCommand] = msgspec.json.Decoder(AnyCommand)


def sample(line: PageLine) -> Sample | None:
    """The page with names for numbers; None if it holds a number that none of our ranks would write."""
    version, _, phase, step, position, group, seq, op, dtype, size, end, tag, about, inside = line.page
    try:
        name: Phase = PHASES[phase]  # type: ignore[assignment]  # the same words, as a Literal
        call = GROUPS[group], seq, OPS[op], DTYPES[dtype], size, bool(inside)
        return Sample(version, name, step, position, *call, line.still, end - 1, tag, about)
    except IndexError:
        return None
