"""How much is read at most, and what was left out."""

from __future__ import annotations

from dataclasses import dataclass, field

CHUNK = 1 << 20
"""Bytes that are read at once."""


@dataclass(frozen=True, slots=True)
class Limits:
    looked_at: int = 100_000
    """Files of folders and archives whose names are looked at."""
    read: int = 20_000
    """Files that are read."""
    unpacked: int = 16 << 30
    """Bytes that come out of one archive."""
    ratio: int = 400
    """Times its own size that an archive may unpack to, beyond `free`."""
    free: int = 64 << 20
    held: int = 64 << 20
    """Bytes of a zip that is not a file of its own: its table stands at its end, so it is held in memory."""
    seconds: float = 60.0
    """Of work, for all that was given together."""
    seconds_a_megabyte: float = 20.0
    """More of it, for each megabyte of input as it was given: a packed one holds ten or twenty of text."""


class Damaged(Exception):
    """What is read ends before its end; str() says why, in words."""


NO_TEXT = "not text"
NO_LOG = "no log by its name"
LINK = "a link"
NO_FILE = "a pipe, a socket or a device"
NO_MEMBER = "a link, a device or the like in an archive"
TWICE = "given twice"
NO_LOSS = frozenset((NO_TEXT, NO_LOG, LINK, NO_FILE, NO_MEMBER, TWICE))
"""Reasons for which no log is missed."""
NAMES = 3
MOST_REASONS = 200


@dataclass(slots=True)
class LeftOut:
    """What was given and not read. Files with the same reason share a line."""

    _names: dict[str, list[str]] = field(default_factory=dict)
    _counts: dict[str, int] = field(default_factory=dict)

    def add(self, name: str, reason: str) -> None:
        if reason not in self._counts and len(self._counts) >= MOST_REASONS:
            reason = "another reason"
        self._counts[reason] = self._counts.get(reason, 0) + 1
        names = self._names.setdefault(reason, [])
        if len(names) < NAMES:
            names.append(name)

    @property
    def missed(self) -> bool:
        """Whether there may be a log among them that complains."""
        return not NO_LOSS.issuperset(self._counts)

    def lines(self) -> tuple[str, ...]:
        return tuple(self._line(reason, names) for reason, names in self._names.items())

    def _line(self, reason: str, names: list[str]) -> str:
        more = self._counts[reason] - len(names)
        return f"{', '.join(names)}{f' and {more:,} more' if more else ''}: {reason}"
