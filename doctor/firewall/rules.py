"""What a firewall rule says, whichever tool wrote it: parsers make this form and the evaluator reads it.

A condition answers with a `Truth`: True, False, or None where it cannot be decided from a rule set alone
(a rate limit, an ipset that was not read, the time of day). Nothing here parses and nothing decides.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from enum import Enum
from typing import TypeAlias

Truth: TypeAlias = "bool | None"
Interval: TypeAlias = tuple[int, int]

WORD = 0xFFFFFFFF


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


# Values of the fields that are numbers only by agreement.
STATES = {"invalid": 1, "established": 2, "related": 4, "new": 8, "untracked": 64, "snat": 128, "dnat": 256}
DIRECTIONS = {"original": 0, "reply": 1}
PACKET_TYPES = {"host": 0, "unicast": 0, "broadcast": 1, "multicast": 2, "other": 3}
ADDRESS_TYPES = (
    "unspec",
    "unicast",
    "local",
    "broadcast",
    "anycast",
    "multicast",
    "blackhole",
    "unreachable",
    "prohibit",
)
TCP_FLAGS = {"fin": 1, "syn": 2, "rst": 4, "psh": 8, "ack": 16, "urg": 32, "ecn": 64, "cwr": 128, "ece": 64}
TCP = 6


@dataclass(frozen=True, slots=True)
class Bits:
    """A number of which only the bits in `known` are known."""

    value: int
    known: int = WORD

    def replace(self, mask: int, other: Bits) -> Bits:
        """This number with the bits of `mask` taken from `other`."""
        value = (self.value & ~mask | other.value & mask) & WORD
        return Bits(value, (self.known & ~mask | other.known & mask) & WORD)

    def flip(self, bits: int) -> Bits:
        return Bits((self.value ^ bits) & WORD & self.known, self.known)

    def under(self, mask: int) -> Interval:
        """The lowest and highest number that the masked value can be."""
        low = self.value & self.known & mask
        return low, low | (mask & ~self.known)


@dataclass(frozen=True, slots=True)
class Spans:
    """Numbers as sorted intervals that do not touch."""

    lows: tuple[int, ...]
    highs: tuple[int, ...]

    @classmethod
    def of(cls, intervals: Iterable[Interval]) -> Spans:
        lows: list[int] = []
        highs: list[int] = []
        for low, high in sorted(intervals):
            if low > high:
                continue
            if highs and low <= highs[-1] + 1:
                highs[-1] = max(highs[-1], high)
            else:
                lows.append(low)
                highs.append(high)
        return cls(tuple(lows), tuple(highs))

    def holds(self, value: Interval) -> Truth:
        """Whether a number, known only to lie within `value`, is one of ours."""
        low, high = value
        at = bisect_right(self.lows, high) - 1
        if at < 0 or self.highs[at] < low:
            return False
        return True if self.lows[at] <= low and high <= self.highs[at] else None

    def cuts(self) -> Iterator[int]:
        """The first numbers at which the answer can change."""
        yield from self.lows
        for high in self.highs:
            yield high + 1


@dataclass(frozen=True, slots=True)
class Masked:
    """Numbers compared after a bitwise and."""

    mask: int
    spans: Spans

    def holds(self, value: Bits) -> Truth:
        answer = self.spans.holds(value.under(self.mask))
        if answer is None and self.spans.lows == self.spans.highs:
            known = value.known & self.mask
            if all((value.value ^ point) & known for point in self.spans.lows):
                return False
        return answer


@dataclass(frozen=True, slots=True)
class Names:
    """Interface names: whole ones, and beginnings such as `eth` for `eth*`."""

    whole: frozenset[str]
    beginnings: tuple[str, ...] = ()

    def holds(self, name: str | None) -> Truth:
        """None is an interface that is not known, other than the loopback."""
        if name is None:
            return (
                True if "" in self.beginnings else None if self.beginnings or self.whole - {"lo"} else False
            )
        return name in self.whole or any(name.startswith(start) for start in self.beginnings)


Matcher: TypeAlias = "Spans | Masked | Names | None"
"""What one field is compared with; None is a value that could not be read, which may match or not."""


@dataclass(frozen=True, slots=True)
class Doubtful:
    """A condition that a rule set alone does not decide; `why` completes "it depends on …"."""

    why: str


@dataclass(frozen=True, slots=True)
class Compare:
    """One or several fields against a set: each element gives one matcher per field."""

    fields: tuple[Field, ...]
    elements: tuple[tuple[Matcher, ...], ...]
    negate: bool = False
    why: str = "a value that was not understood"


class Kind(str, Enum):
    ACCEPT = "accept"
    DROP = "drop"
    REJECT = "reject"
    JUMP = "jump"
    GOTO = "goto"
    RETURN = "return"
    CONTINUE = "continue"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a rule does with the packet: `target` is a chain; `why` tells why an outcome is unknown."""

    kind: Kind
    target: str = ""
    why: str = ""


@dataclass(frozen=True, slots=True)
class VerdictMap:
    """Verdicts by value. Elements never overlap; `otherwise` is for all that none of them holds."""

    fields: tuple[Field, ...]
    elements: tuple[tuple[tuple[Matcher, ...], Verdict], ...]
    otherwise: Verdict = Verdict(Kind.CONTINUE)
    why: str = "a value that was not understood"


@dataclass(frozen=True, slots=True)
class SetMark:
    """Writes a mark: `source` copies another mark first, bits of `clear` are cleared, `flip` is xored in.

    With `clear` None nothing is known about the mark afterwards.
    """

    field: Field
    clear: int | None
    flip: int = 0
    source: Field | None = None


@dataclass(frozen=True, slots=True)
class Untrack:
    """Takes the packet out of connection tracking, where that has not yet begun."""


Step: TypeAlias = "Compare | Doubtful | Verdict | VerdictMap | SetMark | Untrack"


@dataclass(frozen=True, slots=True)
class Rule:
    """Steps run from left to right until a condition fails or a verdict falls; `text` is for people."""

    steps: tuple[Step, ...]
    text: str


@dataclass(frozen=True, slots=True)
class Hook:
    """Where the kernel calls a base chain. `devices` only for hooks of a network device."""

    name: str
    priority: int
    nat: bool = False
    policy: Kind = Kind.ACCEPT
    devices: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Chain:
    name: str
    rules: tuple[Rule, ...] = ()
    hook: Hook | None = None


@dataclass(frozen=True, slots=True)
class Table:
    """`family` is nft's (ip, ip6, inet, netdev, bridge, arp); `tool` is what wrote and shows it."""

    family: str
    name: str
    tool: str
    chains: dict[str, Chain] = field(hash=False)

    @property
    def title(self) -> str:
        return f"{self.family} {self.name}"
