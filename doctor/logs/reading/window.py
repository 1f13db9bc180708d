"""The text of a file piece by piece, with some text before and after each piece.

In a text that was copied, lines that a terminal broke at its width are joined, and what begins every line,
such as blanks, the `> ` of a quotation or the numbers of `cat -n`, is left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise, takewhile

from doctor.logs.forms import complaint
from doctor.logs.forms.line import said_of
from doctor.logs.forms.prefix import PrefixLayout
from doctor.logs.forms.times import Clock
from doctor.logs.model import Form
from doctor.logs.reading.cut_off import STAMP
from doctor.logs.sentence import sentence
from doctor.logs.sources import DamagedInput
from doctor.logs.steps import says_step
from doctor.text.printable import clean_line

LEAST, MOST = 72, 400
"""The widths of terminals."""
_SEVERAL = 3
"""Fewer different lines of exactly the greatest length may be chance, or one message of many ranks."""
_INSIDE = re.compile(rb"\S\n |[A-Z]\n[A-Z]|[a-z]\n[a-z]|\d\n\d|[\w.,:]\n[.,:;)\]]| \n\S")
_IN_WORDS = re.compile(rb"[a-z :/]\n[a-z0-9]")
_OWN = re.compile(r"\s{2}|[-+|=*#{<>]|\d{1,12}[,;\t|]")
"""How rows of tables, dictionaries and indented lines begin."""
_NUMBERED = re.compile(rb"[ \d]{5}\d\t")
_NO_BREAK = "\xa0".encode()
_LONGEST = 2000
_CLOCK = Clock(0.0)


def width_of(text: bytes) -> int:
    """The width at which all longer lines of a text were broken; 0 if they were not."""
    lines = text.split(b"\n")
    width = max(map(len, lines))
    if not LEAST <= width <= MOST:
        return 0
    broken = [place for place, line in enumerate(lines[:-1]) if len(line) == width]
    joined = [place for place in broken if _continues(lines[place + 1], lines[place])]
    broken_at = ((place, lines[place][-1:] + b"\n" + lines[place + 1][:1]) for place in joined)
    inside = [place for place, around in broken_at if _INSIDE.fullmatch(around)]  # of a word or a list
    several = len({sentence(lines[place]) for place in joined}) >= _SEVERAL
    if several and len(joined) * 4 >= len(broken) * 3 and len(inside) * 2 >= len(joined):
        return width
    return width if inside and inside == broken else 0


def whole(text: bytes, width: int) -> bytes:
    """The text with its broken lines joined. Empty lines stand for the rest: each line keeps its number."""
    lines = text.split(b"\n")
    if not any(len(line) == width for line in lines):
        return text
    made: list[bytes] = []
    begin, goes_on = 0, False
    for before, line in zip([b"", *lines], lines, strict=False):
        if goes_on and _continues(line, before):
            made[begin] += line
            made.append(b"")
        else:
            begin = len(made)
            made.append(line)
        goes_on = len(line) == width and len(made[begin]) < _LONGEST
    return b"\n".join(made)


def _continues(line: bytes, before: bytes) -> bool:
    """Whether the line can be the rest of the one before: it does not begin as lines of a log do."""
    text = line.decode("utf-8", "replace")
    row = line[:8] == before[:8]
    if row or not text.strip() or says_step(text) or (_OWN.match(text) and not before.endswith(b'", line ')):
        return False
    facts = said_of(text, PrefixLayout(), _CLOCK)
    if facts.form is not Form.PLAIN or facts.prefix or facts.at is not None:
        return False
    in_words = _IN_WORDS.fullmatch(before[-1:] + b"\n" + line[:1]) and not text.split(" ", 1)[0].endswith(":")
    return bool(in_words) or not (facts.headed or complaint.complains(text, facts))


def margin_of(text: bytes) -> bytes:
    """An expression for what begins every line. Frames of a traceback keep the blanks that are their own."""
    lines = [line for line in text.split(b"\n") if line.strip(b"> \t\r")]
    if len(lines) < _SEVERAL:
        return b""
    if text.startswith(b" ") and all(map(_NUMBERED.match, lines)):
        return _NUMBERED.pattern
    pairs = takewhile(lambda pair: len({*pair}) == 1, zip(min(lines), max(lines), strict=False))
    same = bytes(one for one, _ in pairs)
    margin = same[: len(same) - len(same.lstrip(b"> \t"))]
    return b"" if any(line.startswith(b'File "', len(margin)) for line in lines) else re.escape(margin)


def without_margin(pieces: Iterable[bytes]) -> Iterator[bytes]:
    begins: re.Pattern[bytes] | None = None
    margin, rest = None, b""
    for piece in pieces:
        piece = piece.replace(b"\r\n", b"\n") if b"\r" in piece else piece
        text = rest + (piece.replace(_NO_BREAK, b" ") if _NO_BREAK[-1:] in piece else piece)
        if margin is None:
            margin = margin_of(text)
            begins = re.compile(b"(?m)^" + margin) if margin else None
        elif begins and re.search(b"(?m)^(?!" + margin + rb").*[^> \t\r\n].*\n", text):
            begins = None
        end = text.rfind(b"\n") + 1 if begins else 0
        end = end or len(text)
        rest = text[end:]
        yield begins.sub(b"", text[:end]) if begins else text
    if begins and rest:
        yield begins.sub(b"", rest)


AROUND = 16 << 10
"""Bytes before and after a line in which its neighbours are searched."""
LONGEST = 8000
"""The most characters of a line that are examined; a longer line is cut."""
KEPT = 2000
"""The most characters of a line that are kept."""
MOST_PARTS = 32
"""The most states of a line that a progress bar overwrites; only the last ones are read."""
_MOST = 40
_COUNT = re.compile(rb"(?:\d/\d{1,12}|\dit) \[")
"""The count of a progress bar, and the beginning of its times and its rate."""
_RATE = re.compile(rb"[a-zA-Z]/s|s/[a-zA-Z]")
_GLUED = re.compile(rb"[^\s,\]]|\s{1,9}\d{1,3}%\|")
_BRACKET = 600
"""The most bytes between the brackets of a progress bar."""
_SLURM = re.compile(
    rb"(?<=[^\s\"'`(<>/:=-])(?:slurmstepd(?:-[\w.-]{1,80})?|srun): "
    rb"(?=error: |Job step |Force Term|launch/slurm)|(?<=\ds)(?:Killed|Terminated|Aborted|"
    + "已杀死|已终止)".encode()
)
"""A line of Slurm, or the word of a shell behind a bar, glued to text that has no line end."""
_DASHES = b"-" * 70


@dataclass(slots=True)
class Window:
    """The lines in data[start:end] are read now; the text around them only gives their neighbours."""

    data: bytes
    start: int
    end: int
    number: int
    """The number of the line at `start`."""

    @property
    def text(self) -> bytes:
        return self.data[self.start : self.end]

    def around(self, start: int, end: int, prefix: str = "") -> Neighbours:
        """The neighbours of the line at [start, end); those with its prefix and another time get its time."""
        return Neighbours(self.data, start, end, prefix)

    def first(self, most: int) -> Iterator[tuple[int, int]]:
        """Where each of the first lines begins and ends."""
        at = self.start
        while at < self.end and most > 0:
            end = self.data.find(b"\n", at, self.end)
            end = self.end if end < 0 else end
            yield at, end
            at = end + 1
            most -= 1

    def last(self, most: int) -> Iterator[tuple[int, int]]:
        """Where each of the last lines begins and ends, from the end backwards."""
        end = self.end - self.data.endswith(b"\n", self.start, self.end)
        while end > self.start and most > 0:
            start = max(self.data.rfind(b"\n", self.start, end) + 1, self.start)
            yield start, end
            end = start - 1
            most -= 1


@dataclass(slots=True)
class Neighbours:
    _data: bytes
    _start: int
    _end: int
    _prefix: str

    def above(self, most: int = _MOST) -> list[str]:
        part = self._data[max(0, self._start - AROUND) : self._start]
        return self._like(_short(line) for line in reversed(part.rsplit(b"\n", most + 1)[-most - 1 : -1]))

    def below(self) -> list[str]:
        part = self._data[self._end + 1 : self._end + AROUND]
        return self._like(_short(line) for line in part.split(b"\n", _MOST)[:_MOST])

    def _like(self, lines: Iterable[str]) -> list[str]:
        steady = STAMP.sub("", self._prefix, count=1)
        if steady == self._prefix:
            return [*lines]
        owns = [(line, STAMP.sub("", line, count=1)) for line in lines]
        return [self._prefix + own[len(steady) :] if own.startswith(steady) else line for line, own in owns]

    def dashes(self) -> bool:
        before = self._data.find(_DASHES, max(0, self._start - AROUND), self._start)
        return before >= 0 and self._data.find(_DASHES, self._end, self._end + AROUND) >= 0


def windows(pieces: Iterable[bytes]) -> Iterator[Window]:
    """The windows of all pieces. The last lines of a piece wait for the next, so that all have neighbours."""
    flow = _Flow()
    try:
        for piece in without_margin(pieces):
            yield from flow.take(piece)
    except DamagedInput:
        yield from flow.rest()
        raise
    yield from flow.rest()


class _Flow:
    """Keeps the text that is still needed."""

    def __init__(self) -> None:
        self._before = self._held = b""
        self._number = 1
        self._width: int | None = None

    def take(self, piece: bytes) -> Iterator[Window]:
        held = self._held + piece
        if self._width is None:
            self._width = width_of(held)
        data = self._before + (whole(held, self._width) if self._width else held)
        start = len(self._before)
        end = data.rfind(b"\n", start, max(start, len(data) - AROUND)) + 1
        if end == 0 and len(data) - start > 4 * AROUND:
            end = len(data)  # one line is longer than all the text that is kept
        if end <= start:
            self._held = data[start:]
            return
        yield Window(data, start, end, self._number)
        self._number += data.count(b"\n", start, end)
        self._before, self._held = data[max(0, end - AROUND) : end], data[end:]

    def rest(self) -> Iterator[Window]:
        if self._held:
            data = self._before + self._held
            yield Window(data, len(self._before), len(data), self._number)


def _short(line: bytes) -> str:
    """A neighbour as text, cut: it is compared, but not kept."""
    text = line[-LONGEST:] if b"\r" in line else line[:LONGEST]
    return text.rstrip(b"\r").rpartition(b"\r")[2].decode("utf-8", "replace")


def states(raw: bytes) -> list[str]:
    """The states of one line as harmless text, which may still hold secrets. Most lines have one state."""
    parts = raw.strip(b"\r").split(b"\r")[-MOST_PARTS:] if b"\r" in raw else [raw]
    if b" [" in raw and b"]" in raw and (b"/s" in raw or b"s/" in raw):
        parts = [text for part in parts for text in _cut_at(part, _bar_ends(part))]
    if b"slurmstepd" in raw or b"srun: " in raw or b", ETA: " in raw:
        parts = [
            text for part in parts for text in _cut_at(part, [it.start() for it in _SLURM.finditer(part)])
        ]
    return [clean_line(part[: LONGEST * 4].decode("utf-8", "replace")[:LONGEST].rstrip()) for part in parts]


def _bar_ends(part: bytes) -> list[int]:
    """Where progress bars end to which another text is glued."""
    ends: list[int] = []
    after = 0
    while rate := _RATE.search(part, after):
        begin, end = part.rfind(b"]", after, rate.start()) + 1, part.find(b"]", rate.end()) + 1
        if not end:
            break
        begin = max(begin, after, end - _BRACKET)
        if _GLUED.match(part, end) and _COUNT.search(part, begin, rate.start()):
            ends.append(end)
        after = end
    return ends


def _cut_at(part: bytes, places: list[int]) -> list[bytes]:
    """The parts between these places: a bar leaves its line open, so the next text continues it, whichever
    program prints it.
    """
    places = [0, *places[-MOST_PARTS:], len(part)]
    return [part[start:end] for start, end in pairwise(places)]
