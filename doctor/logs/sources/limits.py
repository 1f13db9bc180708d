"""The limits of reading, and what was left out because of them."""

from dataclasses import dataclass, field

CHUNK = 1 << 20
"""Bytes that are read at a time."""


@dataclass(frozen=True, slots=True)
class ReadLimits:
    looked_at: int = 100_000
    """The most files in folders and archives whose names are examined."""
    read: int = 20_000
    """The most files that are read."""
    unpacked: int = 16 << 30
    """The most bytes that come out of one archive."""
    ratio: int = 400
    """An archive may unpack to this number of times its own size, or to `free`."""
    free: int = 64 << 20
    held: int = 64 << 20
    """The most bytes of a zip in an archive or a pipe: its table is at its end, so memory has to hold it."""
    seconds: float = 60.0
    """CPU time for all inputs together."""
    seconds_a_megabyte: float = 20.0
    """Additional CPU time for each megabyte of input; a packed megabyte holds 10 or 20 MB of text."""


class DamagedInput(Exception):
    """The rest of an input cannot be read; str() says why."""


NO_TEXT = "not text"
NO_LOG = "not a log by its name"
LINK = "a link"
NO_FILE = "a pipe, a socket or a device"
NO_MEMBER = "a link, a device or the like in an archive"
TWICE = "given twice"
NO_LOSS = frozenset((NO_TEXT, NO_LOG, LINK, NO_FILE, NO_MEMBER, TWICE))
"""Reasons that do not mean that a log was missed."""
NAMES = 3
MOST_REASONS = 200


@dataclass(slots=True)
class OmittedInputs:
    """The inputs that were not read. Files with the same reason share a line."""

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
        """Whether a log with complaints may be among them."""
        return not NO_LOSS.issuperset(self._counts)

    def lines(self) -> tuple[str, ...]:
        return tuple(self._line(reason, names) for reason, names in self._names.items())

    def _line(self, reason: str, names: list[str]) -> str:
        more = self._counts[reason] - len(names)
        return f"{', '.join(names)}{f' and {more:,} more' if more else ''}: {reason}"
