"""Where the ways of a packet lead while it is followed, and what that may cost."""

from __future__ import annotations

from dataclasses import dataclass, field

from doctor.firewall.packet import State
from doctor.firewall.rules import RuleTable, VerdictKind


class TooMuch(Exception):
    """The evaluation went past its budget."""


@dataclass(frozen=True, slots=True)
class RulePlace:
    """The rule (or the policy) that spoke."""

    table: RuleTable
    chain: str
    rule: str


@dataclass(frozen=True, slots=True)
class PacketPath:
    """How a state was reached: the first doubt on the way, in words, and the last rule that spoke."""

    doubt: str = ""
    place: RulePlace | None = None


@dataclass(slots=True)
class Fate:
    """Where the packet can end: `ends` holds final outcomes, `alive` the states in which it travels on."""

    alive: dict[State, PacketPath] = field(default_factory=dict)
    ends: dict[VerdictKind, PacketPath] = field(default_factory=dict)

    def live(self, state: State, way: PacketPath) -> None:
        known = self.alive.get(state)
        if known is None or (known.doubt and not way.doubt):
            self.alive[state] = way

    def end(self, kind: VerdictKind, way: PacketPath) -> None:
        known = self.ends.get(kind)
        if known is None or (known.doubt and not way.doubt):
            self.ends[kind] = way


@dataclass(slots=True)
class Budget:
    """Comparisons that one question may cost, so that hostile rules cannot stop the program."""

    left: int = 1_000_000

    def spend(self, amount: int = 1) -> None:
        self.left -= amount
        if self.left < 0:
            raise TooMuch
