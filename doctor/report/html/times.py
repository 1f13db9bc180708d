"""The time of the run, in UTC."""

from __future__ import annotations

from doctor.expect import moment
from doctor.report.html.markup import Html, tag


def time_tag(started: str) -> Html:
    """The time as a tag. A recording may hold any text as its time: an invalid one is shown as it is."""
    when = moment(started)
    if when is None:
        return tag("span", started)
    return tag("time", f"{when:%Y-%m-%d %H:%M:%S} UTC", datetime=f"{when:%Y-%m-%dT%H:%M:%SZ}")
