"""The input of the rules, and how a rule reports what it found."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TypeVar

from doctor.job.ranktable.flaws import NOBODY, RankOwner, TextPlaces, UnplacedFlaw
from doctor.job.ranktable.model import FlawCheck, RankEntry, RankTable, Server, Spot
from doctor.model import Severity
from doctor.text.ranks import ranges

MOST_RANGES = 10
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class TableRules:
    table: RankTable
    check: FlawCheck
    places: TextPlaces

    def lacks_address(self, entry: RankEntry) -> bool:
        """Whether the address is absent or empty; the reader reports wrong ones and missing keys."""
        place = self.places.member(self.places.offset(entry.spot), "device_ip")
        if place is None:
            return self.table.form != "board-id"
        return self.places.text.startswith('""', place)

    def flaw(
        self,
        of: RankEntry | Server | Spot | None,
        key: str | None,
        message: str,
        expected: str,
        actual: str = "",
        severity: Severity = Severity.FAIL,
    ) -> UnplacedFlaw:
        """A flaw of a rank, a server, the object at a place, or the whole file (None)."""
        who = NOBODY
        if isinstance(of, RankEntry):
            who = RankOwner(of.server, of.rank, of.device)
        elif isinstance(of, Server):
            who = RankOwner(of.id)
        spot = of.spot if isinstance(of, RankEntry | Server) else of
        at = self.places.first if spot is None else self.places.offset(spot)
        return UnplacedFlaw(at, key, message, expected, actual, severity, who, self.check)


TableRule = Callable[[TableRules], Iterator[UnplacedFlaw]]


def repeats(things: Iterable[T], key: Callable[[T], tuple[object, ...]]) -> Iterator[tuple[T, T]]:
    """Each thing whose key is a repeat, with the first that had it; a key with None does not count."""
    first: dict[tuple[object, ...], T] = {}
    for thing in things:
        if None not in (own := key(thing)) and (other := first.setdefault(own, thing)) is not thing:
            yield thing, other


def folded(numbers: Iterable[int | None]) -> str:
    """The numbers as `0-3,7`, shortened to fit on a line."""
    words = ranges(number for number in numbers if number is not None)
    return ",".join(words[:MOST_RANGES]) + (",…" if len(words) > MOST_RANGES else "")
