"""The positions of things in a JSON text, and the flaws found there.

The text was already parsed by json.loads, so tokens are enough to find positions. A position is computed only
for the flaws that are shown: a file of a different kind may have thousands.
"""

import json
import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property

from doctor.job.ranktable.model import Flaw, FlawCheck, Spot
from doctor.model import Severity
from doctor.text.hostprogram import table
from doctor.text.textfile import shown

Path = tuple[str | int, ...]
"""The keys and indexes that lead from the root to a value."""

DEEPEST = 8
"""No form nests its lists deeper; anything below has no position of its own."""

BEFORE, AFTER = 40, 40
"""The number of characters of a long line that are shown on both sides of a slip."""

_SAID = {name: lines for name, *lines in table(__file__, "flaws.txt")}

_TOKEN = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"?|[{}\[\],:]|[^\s"{}\[\],:]+', re.DOTALL)


class TextPlaces:
    """The positions in one text, each computed when it is needed. `text` has no comments."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._members: dict[int, dict[str, int]] = {}

    @cached_property
    def _lines(self) -> list[int]:
        return [0, *(match.end() for match in re.finditer("\n", self.text))]

    def spot(self, offset: int) -> Spot:
        line = bisect_right(self._lines, offset)
        return Spot(line, offset - self._lines[line - 1] + 1)

    def offset(self, spot: Spot) -> int:
        return self._lines[min(spot.line, len(self._lines)) - 1] + spot.column - 1

    @property
    def first(self) -> int:
        """The offset of the first character that is not blank."""
        return len(self.text) - len(self.text.lstrip())

    def around(self, offset: int) -> str:
        """The line with this offset; of a long line, only the part around the offset."""
        start = max(self._lines[self.spot(offset).line - 1], offset - BEFORE)
        return shown(self.text[start : offset + AFTER].partition("\n")[0].strip(), BEFORE + AFTER)

    def member(self, at: int, key: str) -> int | None:
        """Where the value of a key begins, in the object at this offset or else nested inside it."""
        if at not in self._members:
            self._members[at] = _members(self.text, at)
        return self._members[at].get(key)

    def written(self, offset: int) -> str:
        """The value that begins here, as the file has it."""
        token = _TOKEN.match(self.text, offset)
        if token is None:
            return "nothing"
        return {"{": "an object", "[": "a list"}.get(token[0], shown(token[0]))


def outline(text: str) -> dict[Path, int]:
    """Where each object and each list begins."""
    found: dict[Path, int] = {}
    path: list[str | int] = []
    awaits_key = False
    for token in _TOKEN.finditer(text):
        first = token[0][0]
        if first in "{[":
            if len(path) <= DEEPEST:
                found[tuple(path)] = token.start()
            path.append("" if first == "{" else 0)
            awaits_key = first == "{"
        elif first in "}]":
            path.pop()
            awaits_key = False
        elif first == ",":
            last = path[-1]
            if isinstance(last, int):
                path[-1] = last + 1
            else:
                awaits_key = True
        elif awaits_key and first == '"':
            path[-1] = _key(token[0])
            awaits_key = False
    return found


def repeated_keys(text: str) -> Iterator[tuple[str, int, int]]:
    """Each key that its object already had: the key, its offset, and the offset of the first one."""
    seen: list[dict[str, int]] = []
    previous: re.Match[str] | None = None
    for token in _TOKEN.finditer(text):
        first = token[0][0]
        if first in "{[":
            seen.append({})
        elif first in "}]":
            seen.pop()
        elif first == ":" and previous:
            key = _key(previous[0])
            at = seen[-1].setdefault(key, previous.start())
            if at != previous.start():
                yield key, previous.start(), at
        previous = token


def constants(text: str) -> Iterator[int]:
    """The offsets of NaN and Infinity, which only Python accepts as JSON."""
    return (token.start() for token in _TOKEN.finditer(text) if token[0] in ("NaN", "Infinity", "-Infinity"))


def _members(text: str, at: int) -> dict[str, int]:
    own: dict[str, int] = {}
    inner: dict[str, int] = {}
    depth = 0
    key, previous = "", ""
    for token in _TOKEN.finditer(text, at):
        word = token[0]
        if previous == ":":
            if depth == 1:
                own[key] = token.start()
            else:
                inner.setdefault(key, token.start())
        if word in ("{", "["):
            depth += 1
        elif word in ("}", "]"):
            depth -= 1
            if depth == 0:
                break
        elif word == ":":
            key = _key(previous)
        previous = word
    return {**inner, **own}


def _key(token: str) -> str:
    return str(json.loads(token)) if "\\" in token else token[1:-1]


MOST_FLAWS = 100
ENOUGH = MOST_FLAWS + 1
"""No rule needs to find more."""


@dataclass(frozen=True, slots=True)
class RankOwner:
    """The server, rank or device that a flaw belongs to."""

    server: str | None = None
    rank: int | None = None
    device: int | None = None


NOBODY = RankOwner()


@dataclass(frozen=True, slots=True)
class UnplacedFlaw:
    """A flaw of the object that begins at an offset, or of its member `key`.

    An empty `actual` means the value that the file has at that position.
    """

    at: int
    key: str | None
    message: str
    expected: str
    actual: str = ""
    severity: Severity = Severity.FAIL
    who: RankOwner = NOBODY
    check: FlawCheck = "rank-table-invalid"


def said(flaw: str, /, **values: object) -> tuple[str, str, str]:
    """The message, the expected and the actual value of a flaw, by its name in flaws.txt."""
    message, expected, *actual = (line.format(**values) for line in _SAID[flaw])
    return message, expected, "".join(actual)


def settle(flaws: Iterable[UnplacedFlaw], places: TextPlaces) -> tuple[Flaw, ...]:
    """The flaws in file order, each with its position, up to a number that a person can use."""
    ordered = sorted(flaws, key=lambda one: (one.severity is not Severity.FAIL, one.at))
    settled = [_settle(one, places) for one in ordered[:MOST_FLAWS]]
    kept = sorted(dict.fromkeys(settled), key=lambda flaw: flaw.spot or Spot(0, 0))
    for one in ordered[MOST_FLAWS:ENOUGH]:
        more = f"… and more; these are the first {MOST_FLAWS}"
        kept.append(Flaw(one.check, more, "", "", None, severity=one.severity))
    return tuple(kept)


def _settle(one: UnplacedFlaw, places: TextPlaces) -> Flaw:
    offset = places.member(one.at, one.key) if one.key is not None else None
    place = one.at if offset is None else offset
    actual, spot, who = one.actual or places.written(place), places.spot(place), one.who
    where = (spot, who.server or None, who.rank, who.device)
    return Flaw(one.check, one.message, one.expected, actual, *where, one.severity)
