"""Numbers, intervals, masks and names, which fields of packets are compared with: the answer is a `Truth`."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TypeAlias

Truth: TypeAlias = "bool | None"
Interval: TypeAlias = tuple[int, int]

WORD = 0xFFFFFFFF


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
        """The lowest and highest possible number after masking."""
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
        """Whether a number that lies in the interval `value` is in these spans."""
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
class MaskedSpans:
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
class InterfaceNames:
    """Interface names: whole names, and prefixes such as `eth` for `eth*`."""

    whole: frozenset[str]
    beginnings: tuple[str, ...] = ()

    @classmethod
    def of(cls, name: str, wildcard: str) -> InterfaceNames:
        """`wildcard` at the end of a name makes it a prefix."""
        return cls(frozenset(), (name[:-1],)) if name.endswith(wildcard) else cls(frozenset({name}))

    def holds(self, name: str | None) -> Truth:
        """Whether the name matches; None is an unknown interface other than the loopback."""
        if name is None and "" not in self.beginnings:
            return None if self.beginnings or self.whole - {"lo"} else False
        return name is None or name in self.whole or any(name.startswith(start) for start in self.beginnings)
