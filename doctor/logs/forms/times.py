"""Reads the time of a line, in seconds since 1970 by its own clock."""

from __future__ import annotations

import re
from calendar import timegm
from dataclasses import dataclass
from datetime import datetime, timedelta

from doctor.text.hostprogram import table

(DATED,), (NAMED,) = table(__file__, "times.txt")
"""2025-10-23-21:05:09.859.568, 2025-01-21T04:41:44,285060+00:00, 2026-11-20_07:22:27; and
Nov 20 07:22:05, also with the day of the week or the year, and 11月 20 of a Chinese locale."""
_SECONDS = r"(?P<hour>\d\d):(?P<minute>\d\d):(?P<second>\d\d)(?:\.(?P<part>\d{1,9}))?"
GLOG = rf"(?:(?P<year>20\d\d)(?=\d{{4}} ))?(?P<month>\d{{1,2}})(?P<day>\d\d) {_SECONDS}"
"""1120 07:22:05.676871010; some write 427 for 0427, or the year too."""

_MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]
_DAY = 86_400.0
_HALF_A_YEAR = 183 * _DAY
_AS_WRITTEN = re.compile(rb"\b(20\d\d)-([01]\d)-([0-3]\d)[-T _]{1,2}[0-2]\d:[0-5]\d:[0-5]\d")
_EDGE = 65_536


@dataclass(frozen=True, slots=True)
class Clock:
    """Knows when a file was last written, which gives the year of times without one."""

    written: float

    def near(self, data: bytes) -> Clock:
        """The clock for text whose lines state a year now and then: a copy may be written years later."""
        ends = (data,) if len(data) <= 2 * _EDGE else (data[:_EDGE], data[-_EDGE:])
        found = [each for text in ends for each in _AS_WRITTEN.finditer(text)]
        try:
            said = max(datetime(*map(int, each.groups())) for each in found)  # type: ignore[arg-type]
        except ValueError:  # none, or the 31st of February
            return self
        return Clock(min(self.written, timegm(said.timetuple()) + _HALF_A_YEAR))

    def at(self, found: re.Match[str]) -> tuple[float | None, bool]:
        """The time that one of the patterns above found, and whether it states its zone."""
        values = found.groupdict()
        name = (values.get("name") or values["month"]).title()
        month = _MONTHS.index(name) + 1 if name in _MONTHS else int(name.rstrip("月"))
        second = min(int(values["second"]), 59)
        rest = (month, int(values["day"]), int(values["hour"]), int(values["minute"]), second)
        try:
            year = values.get("year")
            seconds = float(timegm((datetime(int(year), *rest) if year else self._latest(rest)).timetuple()))
        except (ValueError, OverflowError):
            return None, False
        part = (values.get("part") or "").replace(".", "")
        seconds += float(f"0.{part}") if part else 0.0
        zone = values.get("zone")
        return seconds - _offset(zone), zone is not None

    def _latest(self, rest: tuple[int, int, int, int, int]) -> datetime:
        """The time in the latest year in which it is not later than the file, with a day for time zones."""
        limit = datetime(1970, 1, 1) + timedelta(seconds=self.written + _DAY)
        for year in range(limit.year, limit.year - 9, -1):
            try:
                moment = datetime(year, *rest)
            except ValueError:
                continue  # the 29th of February
            if moment <= limit:
                return moment
        raise ValueError(rest)


def _offset(zone: str | None) -> float:
    if not zone or zone == "Z":
        return 0.0
    digits = zone[1:].replace(":", "")
    seconds = int(digits[:2]) * 3600.0 + int(digits[2:]) * 60.0
    return -seconds if zone[0] == "-" else seconds
