"""What the command printed so far: read from the file that it writes, or from what the relay keeps."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field
from typing import Protocol

from doctor.run.relay.kept import HEAD, RING, Kept
from doctor.run.relay.order import PASS, TERMINAL

NAMES = ("stdin", "stdout", "stderr")
_SEQUENCES = re.compile(rb"(?:\x1b\[[0-9;?]*[A-Za-z])+\Z")
"""What sets colours or shows the cursor."""
_LAST = 256
"""The bytes of a stream's end that show whether its line is complete."""


class Printed(Protocol):
    """One stream."""

    @property
    def total(self) -> int: ...

    def first(self) -> bytes: ...

    def since(self, place: int, most: int = RING) -> tuple[int, bytes]: ...


@dataclass(frozen=True, slots=True)
class Written:
    """A regular file, from where the command began to write to it."""

    file: int
    begin: int
    ours: list[tuple[int, int]] = field(default_factory=list)
    """Where doctor itself wrote into the file: it counts as empty lines."""

    @property
    def total(self) -> int:
        return max(0, os.fstat(self.file).st_size - self.begin)

    def first(self) -> bytes:
        return self._read(self.begin, HEAD)

    def since(self, place: int, most: int = RING) -> tuple[int, bytes]:
        begin = max(place, self.total - most)
        return begin, self._read(self.begin + begin, most)

    def _read(self, at: int, most: int) -> bytes:
        text = os.pread(self.file, most, at)
        for begin, end in self.ours:
            first, last = max(begin - at, 0), min(end - at, len(text))
            if first < last:
                text = text[:first] + b"\n" * (last - first) + text[last:]
        return text


@dataclass(frozen=True, slots=True)
class PrintedBefore:
    """A stream as it was at a moment."""

    stream: Printed
    total: int

    def first(self) -> bytes:
        return self.stream.first()[: self.total]

    def since(self, place: int, most: int = RING) -> tuple[int, bytes]:
        begin, text = self.stream.since(place, most)
        return begin, text[: max(0, self.total - begin)]


class Output:
    """The streams of the command by their names. A file that is both stdout and stderr counts once."""

    def __init__(self, file: int, copied: Sequence[int], kinds: Sequence[str]) -> None:
        self.streams: dict[str, Printed] = {NAMES[at]: Kept(file, n) for n, at in enumerate(copied)}
        self._screen = next((self.streams[NAMES[at]] for at in copied if kinds[at] == TERMINAL), None)
        seen: list[os.stat_result] = []
        for at in (1, 2):
            about = os.fstat(at)
            if kinds[at] == PASS and not any(os.path.samestat(about, each) for each in seen):
                seen.append(about)
                opened = os.open(f"/proc/self/fd/{at}", os.O_RDONLY | os.O_CLOEXEC)
                begin = os.lseek(at, 0, os.SEEK_CUR)
                self.streams[NAMES[at]] = Written(opened, about.st_size if _appends(at) else begin)

    @contextlib.contextmanager
    def without_ours(self) -> Iterator[None]:
        """What is written to stderr meanwhile is not the command's, even if it goes to the same file."""
        about = os.fstat(2)
        yield
        for each in self.streams.values():
            if isinstance(each, Written) and os.path.samestat(about, os.fstat(each.file)):
                each.ours.append((about.st_size, os.lseek(2, 0, os.SEEK_CUR)))

    @property
    def total(self) -> int:
        return sum(self.totals.values())

    @property
    def totals(self) -> Mapping[str, int]:
        """How much each stream has printed."""
        return {name: each.total for name, each in self.streams.items()}

    @property
    def in_line(self) -> bool:
        """Whether the last line on the terminal of the command is incomplete."""
        if self._screen is None or not (total := self._screen.total):
            return False
        return not _SEQUENCES.sub(b"", self._screen.since(max(0, total - _LAST))[1]).endswith(b"\n")

    def when(self, totals: Mapping[str, int]) -> Output:
        """The output as it was when the streams had printed so much."""
        made = copy(self)
        made.streams = {name: PrintedBefore(each, totals[name]) for name, each in self.streams.items()}
        return made


def _appends(at: int) -> bool:
    import fcntl

    return bool(fcntl.fcntl(at, fcntl.F_GETFL) & os.O_APPEND)
