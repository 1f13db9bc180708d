"""The first lines say which hosts were seen from inside a container, whichever of them have findings."""

from __future__ import annotations

from doctor.report.details import seen_inside
from tests.support.cases import cases
from tests.support.recordings import heard, recording
from tests.support.reports import NAMES, SMALL_SHM, report

INSIDE = {"view": {"/run/.containerenv": "x"}}


@cases
def test_all_hosts_of_the_view_are_named(inside: list[str], said: str) -> None:
    answers = {
        name: heard(
            place,
            NAMES,
            **(INSIDE if name in inside else {}),
            **({"spaces": SMALL_SHM} if place == 2 else {}),
        )
        for place, name in enumerate(NAMES, 1)
    }
    assert seen_inside(report(recording(NAMES, heard=answers))) == said
