"""What is judged, and how a rule says what it found."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from doctor.job.ranktable.flaws import Places, RankOwner, UnplacedFlaw, found
from doctor.job.ranktable.model import FlawCheck, RankEntry, RankTable, Server, Spot
from doctor.model import Severity

MOST_RANGES = 10


class TableRules:
    def __init__(self, table: RankTable, check: FlawCheck, places: Places) -> None:
        self.table = table
        self.check: FlawCheck = check
        self.places = places

    def entries(self) -> Iterator[RankEntry]:
        """In the order of the file."""
        for server in self.table.servers:
            yield from server.entries

    def lacks_address(self, entry: RankEntry) -> bool:
        """There is none, rather than one that is wrong or a key whose absence was told at reading."""
        place = self.places.member(self.places.offset(entry.spot), "device_ip")
        if place is None:
            return self.table.form != "board-id"
        return self.places.text.startswith('""', place)

    def rank(
        self,
        entry: RankEntry,
        key: str | None,
        message: str,
        expected: str,
        actual: str = "",
        severity: Severity = Severity.FAIL,
    ) -> UnplacedFlaw:
        who = RankOwner(entry.server, entry.rank, entry.device)
        return self._found(entry.spot, key, message, expected, actual, who, severity)

    def server(
        self,
        server: Server,
        key: str | None,
        message: str,
        expected: str,
        actual: str = "",
        severity: Severity = Severity.FAIL,
    ) -> UnplacedFlaw:
        return self._found(server.spot, key, message, expected, actual, RankOwner(server.id), severity)

    def whole(
        self,
        spot: Spot | None,
        key: str | None,
        message: str,
        expected: str,
        actual: str = "",
        severity: Severity = Severity.FAIL,
    ) -> UnplacedFlaw:
        return self._found(spot, key, message, expected, actual, RankOwner(), severity)

    def _found(
        self,
        spot: Spot | None,
        key: str | None,
        message: str,
        expected: str,
        actual: str,
        who: RankOwner,
        severity: Severity,
    ) -> UnplacedFlaw:
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
