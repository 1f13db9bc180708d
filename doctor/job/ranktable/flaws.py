"""Collecting flaws while a table is read or judged, and giving each its line and column at the end.

A place is looked up only for the flaws that are shown: a file of another kind may have thousands.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from doctor.job.ranktable.model import Flaw, FlawCheck, Spot
from doctor.job.ranktable.places import Places
from doctor.model import Severity

MOST_FLAWS = 100
ENOUGH = MOST_FLAWS + 1
"""Nobody needs to look for more of one kind."""


@dataclass(frozen=True, slots=True)
class Who:
    """Whose data are looked at."""

    server: str | None = None
    rank: int | None = None
    device: int | None = None


NOBODY = Who()


@dataclass(frozen=True, slots=True)
class Found:
    """A flaw of the object that begins at an offset, or of the member `key` of it.

    Without an `actual` that is what the file has at that place.
    """

    at: int
    key: str | None
    flaw: Flaw


def found(
    check: FlawCheck,
    at: int,
    key: str | None,
    message: str,
    expected: str,
    actual: str = "",
    who: Who = NOBODY,
    severity: Severity = Severity.FAIL,
) -> Found:
    server = who.server or None
    flaw = Flaw(check, message, expected, actual, None, server, who.rank, who.device, severity)
    return Found(at, key, flaw)


def settle(flaws: Iterable[Found], places: Places) -> tuple[Flaw, ...]:
    """In the order of the file, each with its place; no more than a person can use."""
    ordered = sorted(flaws, key=lambda one: (one.flaw.severity is not Severity.FAIL, one.at))
    settled = [_settle(one, places) for one in ordered[:MOST_FLAWS]]
    kept = sorted(dict.fromkeys(settled), key=lambda flaw: flaw.spot or Spot(0, 0))
    for one in ordered[MOST_FLAWS:ENOUGH]:
        more = f"… and more; these are the first {MOST_FLAWS}"
        kept.append(Flaw(one.flaw.check, more, "", "", None, severity=one.flaw.severity))
    return tuple(kept)


def _settle(one: Found, places: Places) -> Flaw:
    offset = places.member(one.at, one.key) if one.key is not None else None
    place = one.at if offset is None else offset
    return replace(one.flaw, spot=places.spot(place), actual=one.flaw.actual or places.written(place))
