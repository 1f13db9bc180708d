"""Read the members of objects by type, and note every mistake instead of raising it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from doctor.job.ranktable.flaws import MOST_FLAWS, NOBODY, Path, RankOwner, TextPlaces, UnplacedFlaw
from doctor.job.ranktable.model import StatedCount
from doctor.model import Severity
from doctor.text.addresses import is_address
from doctor.text.textfile import shown

LONGEST_NAME = 1024
LONGEST_ID = 64
"""The most characters of a server's id."""
MOST_ELEMENTS = 65_536
"""The most elements of a list. HCCL allows this many ranks."""

MOST_COMPLAINTS = 10 * MOST_FLAWS
_NUMBER = re.compile(r"[0-9]{1,12}")
_TOO_BIG = 10**12
_MASKED = re.compile(r"[0-9*]{1,3}(?:\.[0-9*]{1,3}){3}")
_PLACEHOLDER = re.compile(
    r".*\.\*.*|\*+|(?=.*x)[0-9x]{1,3}(?:\.[0-9x]{1,3}){3}|<.*>|\$.*|\{.*\}"
    r"|(?:(?:your|host|node|server)[_-]?)?(?:ip|id)",
    re.IGNORECASE,
)
"""Placeholders that examples use for a server: `10.*.*.*`, `x.x.x.x`, `<server ip>`, `your_ip`."""
_ABSENT = object()


@dataclass(frozen=True, slots=True)
class TableNode:
    """One object of the file, and the server, rank or device that it describes."""

    members: Mapping[str, object]
    path: Path
    who: RankOwner = NOBODY

    def __contains__(self, key: str) -> bool:
        return key in self.members

    def of(self, server: str | None = None, rank: int | None = None, device: int | None = None) -> TableNode:
        return replace(self, who=RankOwner(server or self.who.server, rank, device))


class Fields:
    """`offsets` say where each object begins. Numbers may be written with or without quotes.

    `unquoted`, `masked` and `placeholders` are members with a number without quotes, an address with digits
    replaced by '*', and a server that is a placeholder. There may be one for every rank, so each kind is one
    flaw.
    """

    def __init__(self, places: TextPlaces, offsets: Mapping[Path, int]) -> None:
        self.places = places
        self.flaws: list[UnplacedFlaw] = []
        self.unquoted: list[tuple[int, str]] = []
        self.masked: list[tuple[int, str]] = []
        self.placeholders: list[tuple[int, str]] = []
        self._offsets = offsets

    def at(self, node: TableNode) -> int:
        return self._offsets.get(node.path, 0)

    def complain(
        self,
        node: TableNode,
        key: str | None,
        message: str,
        expected: str,
        actual: str = "",
        severity: Severity = Severity.FAIL,
    ) -> None:
        if len(self.flaws) > MOST_COMPLAINTS:
            return
        self.flaws.append(UnplacedFlaw(self.at(node), key, message, expected, actual, severity, node.who))

    def number(self, node: TableNode, key: str, *, needed: bool = True) -> int | None:
        value = self._member(node, key, "a number", needed)
        if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < _TOO_BIG:
            self.unquoted.append((self.at(node), key))
            return value
        if isinstance(value, str) and _NUMBER.fullmatch(value):
            return int(value)
        if value is not _ABSENT:
            self.complain(node, key, f"{key} is not a number", "a number, not negative")
        return None

    def name(
        self, node: TableNode, key: str, *, needed: bool = True, longest: int = LONGEST_NAME
    ) -> str | None:
        """A text that names something; it may be empty if it is not needed."""
        value = self._member(node, key, "a text", needed)
        if value is _ABSENT:
            return None
        if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < _TOO_BIG:
            self.unquoted.append((self.at(node), key))
            value = str(value)
        if not isinstance(value, str):
            self.complain(node, key, f"{key} is not a text", "a text in double quotes")
        elif needed and not value:
            self.complain(node, key, f"{key} is empty", "a text")
        elif not value.isprintable():
            self.complain(node, key, f"{key} has invisible characters", "a readable text")
        elif len(value) > longest:
            self.complain(node, key, f"{key} is longer than {longest} characters", f"at most {longest}")
        else:
            return value
        return None

    def server(self, node: TableNode) -> str:
        """The server_id, any text but a placeholder of an example; empty if it is missing or wrong."""
        id = self.name(node, "server_id", longest=LONGEST_ID) or ""
        if _PLACEHOLDER.fullmatch(id):
            self.placeholders.append((self.at(node), "server_id"))
        return id

    def addresses(self, node: TableNode, key: str) -> tuple[str, ...]:
        """One or more addresses, separated by commas; empty if the member is empty, missing or wrong."""
        value = self._member(node, key, "an address", False)
        if value is _ABSENT or value == "":
            return ()
        if not isinstance(value, str):
            self.complain(node, key, f"{key} is not an address", "an IPv4 or IPv6 address in double quotes")
            return ()
        parts = tuple(value.split(","))
        if all("*" in part and _MASKED.fullmatch(part) for part in parts):
            self.masked.append((self.at(node), key))
            return ()
        wrong = next((part for part in parts if "%" in part or not is_address(part)), None)
        if wrong is not None:
            self.complain(node, key, f"{key} is not an address", "an IPv4 or IPv6 address", shown(wrong))
            return ()
        return parts

    def ports(self, node: TableNode, names: Sequence[str]) -> Mapping[str, int]:
        given = ((name, self.number(node, name)) for name in names if name in node)
        return {name: number for name, number in given if number is not None}

    def objects(self, node: TableNode, key: str) -> tuple[TableNode, ...]:
        """The members of a list that has at least one element, and only objects."""
        value = self._member(node, key, "a list", True)
        if value is _ABSENT:
            return ()
        if not isinstance(value, list) or not value:
            empty = "is empty" if value == [] else "is not a list"
            self.complain(node, key, f"{key} {empty}", "a list of objects", "[]" if value == [] else "")
            return ()
        if len(value) > MOST_ELEMENTS:
            self.complain(node, key, f"{key} has more than {MOST_ELEMENTS:,} elements", "fewer")
        return tuple(self._objects(node, key, value[:MOST_ELEMENTS]))

    def count(self, node: TableNode, key: str, present: int, things: str) -> Iterator[StatedCount]:
        said = self.number(node, key, needed=False)
        if said is not None:
            place = self.places.member(self.at(node), key)
            spot = self.places.spot(self.at(node) if place is None else place)
            yield StatedCount(key, said, present, things, spot)

    def _objects(self, node: TableNode, key: str, values: list[object]) -> Iterator[TableNode]:
        for index, value in enumerate(values):
            if isinstance(value, dict):
                yield TableNode(value, (*node.path, key, index), node.who)
            else:
                message = f"element {index + 1} of {key} is not an object"
                actual = "a list" if isinstance(value, list) else shown(str(value))
                self.complain(node, key, message, "an object in braces", actual)

    def _member(self, node: TableNode, key: str, kind: str, needed: bool) -> object:
        value = node.members.get(key, _ABSENT)
        if value is _ABSENT and needed:
            self.complain(node, None, f"{key} is missing", f'"{key}": {kind}', f'no "{key}"')
        return value
