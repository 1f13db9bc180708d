"""The meaning of a firewall rule, whichever tool wrote it: parsers produce it, and the evaluator reads it.

A condition has a `Truth`: True, False, or None if a rule set alone does not decide it (a rate limit, an ipset
that was not read, the time of day). Nothing here parses, and nothing decides.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import Enum
from typing import TypeAlias

from doctor.firewall.values import InterfaceNames, MaskedSpans, Spans


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

# Values of the fields that are numbers only by convention.
STATES = {"invalid": 1, "established": 2, "related": 4, "new": 8, "untracked": 64, "snat": 128, "dnat": 256}
DIRECTIONS = {"original": 0, "reply": 1}
PACKET_TYPES = {"host": 0, "unicast": 0, "broadcast": 1, "multicast": 2, "other": 3}
ADDRESS_TYPES = {
    "unspec": 0, "unicast": 1, "local": 2, "broadcast": 3, "anycast": 4, "multicast": 5, "blackhole": 6,
    "unreachable": 7, "prohibit": 8,
}  # fmt: skip
TCP_FLAGS = {"fin": 1, "syn": 2, "rst": 4, "psh": 8, "ack": 16, "urg": 32, "ecn": 64, "cwr": 128, "ece": 64}
TCP = 6
PROTOCOLS = {
    "tcp": TCP, "udp": 17, "icmp": 1, "icmpv6": 58, "ipv6-icmp": 58, "sctp": 132, "dccp": 33, "udplite": 136,
    "esp": 50, "ah": 51, "gre": 47, "igmp": 2, "vrrp": 112, "ospf": 89, "ipip": 4, "ipencap": 4, "ipv6": 41,
}  # fmt: skip
"""The protocols that both tools know by name."""

REWRITING = {
    "dnat": "sends the connection to another address", "redirect": "sends the connection to another port",
    "netmap": "rewrites addresses", "tproxy": "hands the connection to a proxy",
    "synproxy": "answers in the place of the listener", "fwd": "hands the packet to another interface",
    "queue": "asks a program", "nfqueue": "asks a program",
}  # fmt: skip
"""Statements and targets whose outcome the rules do not show; iptables writes them in capitals."""

Matcher: TypeAlias = "Spans | MaskedSpans | InterfaceNames | None"
"""What one field is compared with; None is an unreadable value, which may match or not."""


@dataclass(frozen=True, slots=True)
class DoubtfulCondition:
    """A condition that a rule set alone does not decide; `why` completes "it depends on …".

    `varies`: it may hold for one packet of a job and not for the next, so no connection decides it.
    """

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
    """Write a mark: `source` copies another mark first, bits of `clear` are cleared, `flip` is xored in.

    If `clear` is None, nothing is known about the mark afterwards.
    """

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
