"""What is judged, and how a rule says what it found."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from doctor.job.ranktable.flaws import NOBODY, Places, RankOwner, UnplacedFlaw, found
from doctor.job.ranktable.model import FlawCheck, RankEntry, RankTable, Server, Spot
from doctor.model import Severity

MOST_RANGES = 10


class TableRules:
    def __init__(self, table: RankTable, check: FlawCheck, places: Places) -> None:
        self.table = table
        self.check: FlawCheck = check
        self.places = places

    def lacks_address(self, entry: RankEntry) -> bool:
        """Whether there is none, rather than a wrong one or a missing key that the reader has reported."""
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
        """A flaw of a rank, of a server, of the object at a place, or of the whole file (None)."""
        who = NOBODY
        if isinstance(of, RankEntry):
            who = RankOwner(of.server, of.rank, of.device)
        elif isinstance(of, Server):
            who = RankOwner(of.id)
        spot = of.spot if isinstance(of, RankEntry | Server) else of
        at = self.places.first if spot is None else self.places.offset(spot)
        return found(self.check, at, key, message, expected, actual, who, severity)


TableRule = Callable[[TableRules], Iterator[UnplacedFlaw]]


def folded(numbers: Iterable[int]) -> str:
    """`0-3,7`, of any numbers; no more than a line holds."""
    ranges: list[list[int]] = []
    for number in sorted(set(numbers)):
        if ranges and number == ranges[-1][1] + 1:
            ranges[-1][1] = number
        else:
            ranges.append([number, number])
    words = [str(low) if low == high else f"{low}-{high}" for low, high in ranges[:MOST_RANGES]]
    return ",".join(words) + (",…" if len(ranges) > MOST_RANGES else "")
