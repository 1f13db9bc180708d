"""The first lines say which hosts were seen from inside a container, whichever of them have findings."""

import pytest

from doctor.report.page.examination import seen_inside
from tests.support.recordings import heard, recording
from tests.support.reports import NAMES, SMALL_SHM, report

INSIDE = {"view": {"/run/.containerenv": "x"}}


@pytest.mark.parametrize(
    ("inside", "said"),
    [
        (NAMES, "seen from inside the container"),
        (NAMES[:3], "node[1-3]: seen from inside the container"),
        (NAMES[1:2], "node2: seen from inside the container"),
        (NAMES[2:], ""),
    ],
    ids=["all", "three", "the faulty one", "others than the faulty one"],
)
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
