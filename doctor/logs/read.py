"""Reads logs: what was given -> Logs, in memory that does not grow with the files.

    matcher = Matcher(load_symptoms().symptoms)
    logs = read([Path("logs/"), sys.stdin.buffer], matcher, loss=LossCollector)

Nothing is judged here. What could not be read is in `Logs.left_out`, each with its reason.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from doctor.logs.model import Curve, LogFile, Logs, Sighting
from doctor.logs.reading.resolve import People, finished
from doctor.logs.reading.scan import scan
from doctor.logs.reading.scanned import Collecting, Matching
from doctor.logs.sources import Given, Limits, Sources

MOST_SIGHTINGS = 200_000
"""Of all files together."""


def read(
    given: Sequence[Given],
    matcher: Matching,
    *,
    loss: Callable[[str], Collecting] | None = None,
    limits: Limits | None = None,
    now: float | None = None,
    seen: Callable[[str], None] | None = None,
) -> Logs:
    """All that is known of the files. `seen` is told the name of each file before it is read."""
    sources = Sources(given, limits or Limits(), time.time() if now is None else now)
    scans = []
    for opened in sources.files():
        if seen:
            seen(opened.name)
        scans.append(scan(opened, matcher, loss))
    people = People(scans)
    files: list[LogFile] = []
    sightings: list[Sighting] = []
    curves: list[Curve] = []
    for each in scans:
        file, found, lines = finished(each, people)
        files.append(file)
        sightings += found
        curves += lines
    left_out, missed = list(sources.left_out.lines()), sources.left_out.missed
    if len(sightings) > MOST_SIGHTINGS:
        left_out.append(f"{len(sightings) - MOST_SIGHTINGS:,} further messages: too many")
        sightings = sightings[:MOST_SIGHTINGS]
    return Logs(tuple(files), tuple(sightings), tuple(curves), tuple(left_out), missed)
