"""The meaning of a firewall rule, whichever tool wrote it: parsers produce it, and the evaluator reads it.

A condition has a `Truth`: True, False, or None if a rule set alone does not decide it (a rate limit, an ipset
that was not read, the time of day). Nothing here parses, and nothing decides.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import Enum
from typing import TypeAlias

from doctor.firewall.values import InterfaceNames, MaskedSpans, Spans
from doctor.text.hostprogram import sections


class Field(str, Enum):
    """What a rule can look at in a packet."""

    FAMILY = "family"
    PROTO = "protocol"
    SOURCE = "source address"
    DEST = "destination address"
    SPORT = "source port"
    DPORT = "destination port"
    IIF = "input interface"
    OIF = "output interface"
    FLAGS = "TCP flags"
    STATE = "connection state"
    DIRECTION = "connection direction"
    MARK = "packet mark"
    CTMARK = "connection mark"
    SOURCE_TYPE = "source address type"
    DEST_TYPE = "destination address type"
    PACKET_TYPE = "packet type"


ADDRESSES = (Field.SOURCE, Field.DEST)

WORDS = sections(__file__, "words.txt")


def _numbers(name: str) -> dict[str, int]:
    """Values of fields that are numbers only by convention."""
    return {word: int(number) for word, number in WORDS[name].items()}


STATES = _numbers("states")
DIRECTIONS = _numbers("directions")
PACKET_TYPES = _numbers("packet types")
ADDRESS_TYPES = _numbers("address types")
TCP_FLAGS = _numbers("TCP flags")
TCP = 6
PROTOCOLS = _numbers("protocols")
"""The protocols that both tools know by name."""

REWRITING = WORDS["rewriting"]
"""Statements and targets whose outcome the rules do not show; iptables writes them in capitals."""

Matcher: TypeAlias = "Spans | MaskedSpans | InterfaceNames | None"
"""What one field is compared with; None is an unreadable value, which may match or not."""


@dataclass(frozen=True, slots=True)
class DoubtfulCondition:
    """`why` completes "it depends on …". What `varies` from packet to packet is decided by no connection."""

    why: str
    varies: bool = False


@dataclass(frozen=True, slots=True)
class Compare:
    """One or several fields against a set: each element has one matcher per field."""

    fields: tuple[Field, ...]
    elements: tuple[tuple[Matcher, ...], ...]
    negate: bool = False
    why: str = "a value that was not understood"


class VerdictKind(str, Enum):
    ACCEPT = "accept"
    DROP = "drop"
    REJECT = "reject"
    JUMP = "jump"
    GOTO = "goto"
    RETURN = "return"
    CONTINUE = "continue"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class RuleVerdict:
    """What a rule does with the packet: `target` is a chain; `why` explains an unknown outcome."""

    kind: VerdictKind
    target: str = ""
    why: str = ""


@dataclass(frozen=True, slots=True)
class VerdictMap:
    """Verdicts by value. Elements never overlap; `otherwise` applies if no element holds."""

    fields: tuple[Field, ...]
    elements: tuple[tuple[tuple[Matcher, ...], RuleVerdict], ...]
    otherwise: RuleVerdict = RuleVerdict(VerdictKind.CONTINUE)
    why: str = "a value that was not understood"


@dataclass(frozen=True, slots=True)
class SetMark:
    """Copy `source`, clear bits, xor `flip`. If `clear` is None, the mark is unknown afterwards."""

    field: Field
    clear: int | None
    flip: int = 0
    source: Field | None = None


@dataclass(frozen=True, slots=True)
class Untrack:
    """Exclude the packet from connection tracking, if tracking has not begun yet."""


Step: TypeAlias = "Compare | DoubtfulCondition | RuleVerdict | VerdictMap | SetMark | Untrack"


@dataclass(frozen=True, slots=True)
class Rule:
    """Steps run from left to right until a condition fails or a verdict is reached; `text` is for people."""

    steps: tuple[Step, ...]
    text: str


@dataclass(frozen=True, slots=True)
class Hook:
    """Where the kernel calls a base chain. `devices` applies only to hooks of a network device."""

    name: str
    priority: int
    nat: bool = False
    policy: VerdictKind = VerdictKind.ACCEPT
    devices: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Chain:
    name: str
    rules: tuple[Rule, ...] = ()
    hook: Hook | None = None


@dataclass(frozen=True, slots=True)
class RuleTable:
    """`family` is nft's (ip, ip6, inet, netdev, bridge, arp); `tool` is what wrote and shows it."""

    family: str
    name: str
    tool: str
    chains: dict[str, Chain] = field(hash=False)

    @property
    def title(self) -> str:
        return f"{self.family} {self.name}"

    def with_rules(self, chain: str, first: tuple[Rule, ...]) -> RuleTable:
        """The table with these rules at the head of a chain."""
        old = self.chains[chain]
        return replace(self, chains={**self.chains, chain: replace(old, rules=(*first, *old.rules))})
