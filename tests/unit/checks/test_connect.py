"""port-unreachable on the results of a mesh: facts in, problems out."""

from __future__ import annotations

from dataclasses import replace

import pytest

from doctor.api import Undecided
from doctor.job.plan import draft
from doctor.job.wishes import JobWishes
from doctor.judge.registry import find_checks
from doctor.mesh import MeshResult
from doctor.model import Host
from tests.support.recordings import mesh

(CHECK,) = (check for check in find_checks().checks if check.id == "port-unreachable")
NAMES = ["a", "b", "c"]


def judged(seen: MeshResult) -> int:
    """The number of problems; raises Undecided as the check does."""
    return len(list(CHECK.run(seen, draft([Host(name, name) for name in NAMES], JobWishes()))))


def test_every_host_reached_every_other() -> None:
    assert judged(mesh(NAMES)) == 0


@pytest.mark.parametrize(
    ("end", "words"), [("source", "could connect to it"), ("target", "could connect to")]
)
def test_a_host_that_was_tested_in_one_direction_only_is_not_proved(end: str, words: str) -> None:
    """`a` took part in one direction only: whatever the others report, the other direction is unknown."""
    whole = mesh(NAMES)
    other = {"source": "target", "target": "source"}[end]
    links = tuple(link for link in whole.links if getattr(link, other) != "a")
    with pytest.raises(Undecided, match=words) as caught:
        judged(replace(whole, links=links))
    assert caught.value.hosts == ("a",)


def test_links_that_were_not_tested_prove_nothing() -> None:
    whole = mesh(NAMES)
    links = tuple(replace(link, outcome="untested") for link in whole.links)
    with pytest.raises(Undecided) as caught:
        judged(replace(whole, links=links))
    assert set(caught.value.hosts) == set(NAMES)
