"""large-packets-lost on the results of a mesh: facts in, problems out."""

from collections.abc import Collection
from dataclasses import replace

import pytest

from doctor.api import Problem, Skip, Undecided
from doctor.job.plan import draft
from doctor.job.wishes import JobWishes
from doctor.judge.registry import find_checks
from doctor.mesh import Link, MeshResult
from doctor.model import Confidence, Host
from tests.support.cases import cases
from tests.support.recordings import mesh

(CHECK,) = (check for check in find_checks().checks if check.id == "large-packets-lost")
NAMES = ["a", "b", "c", "d"]


def carried(names: list[str], lost: Collection[tuple[str, str]] = ()) -> MeshResult:
    """A mesh in which the data of these senders did not arrive at these receivers."""

    def loaded(link: Link) -> Link:
        there, back = (link.source, link.target), (link.target, link.source)
        fate = "out" if there in lost else "back" if back in lost else "both"
        return replace(link, carried=fate, segments=(46, 7 if fate == "out" else 0))  # type: ignore[arg-type]

    whole = mesh(names)
    return replace(whole, links=tuple(map(loaded, whole.links)), load=65536)


def judged(seen: MeshResult, names: list[str] = NAMES) -> list[Problem]:
    """The problems; raises Undecided and Skip as the check does."""
    return list(CHECK.run(seen, draft([Host(name, name) for name in names], JobWishes())))


def into(host: str) -> list[tuple[str, str]]:
    return [(other, host) for other in NAMES if other != host]


def out_of(host: str) -> list[tuple[str, str]]:
    return [(host, other) for other in NAMES if other != host]


def test_everything_arrived() -> None:
    assert judged(carried(NAMES)) == []


@cases
def test_who_loses_large_packets(lost: list[tuple[str, str]], hosts: tuple[str, ...], words: str) -> None:
    (found,) = judged(carried(NAMES, lost))
    assert found.hosts == hosts
    assert words in found.summary
    assert (found.confidence is Confidence.CERTAIN) == (len(hosts) < 2)
    assert found.expected == "64 KB arrive, both ways between all hosts"
    assert "lost on the way; 7 of 46 segments were sent again" in found.evidence[0].text


def test_between_two_hosts_nobody_knows_whose_fault_it_is() -> None:
    (found,) = judged(carried(["a", "b"], [("a", "b")]), ["a", "b"])
    assert (found.hosts, found.confidence) == (("a", "b"), Confidence.SUSPECT)


def test_a_pair_that_was_tried_no_further_than_its_handshake_is_undecided() -> None:
    """An agent that cannot carry a load, on a host to which no other host can connect."""
    whole = carried(NAMES)
    links = tuple(
        replace(link, carried="", segments=(0, 0)) if link.source == "b" else link
        for link in whole.links
        if link.target != "b"
    )
    with pytest.raises(Undecided, match=r"b -> .: not tried beyond the handshake") as caught:
        judged(replace(whole, links=links))
    assert caught.value.hosts == ("b",)


@pytest.mark.parametrize("load", [0, 65536])
def test_a_mesh_that_carried_nothing_is_skipped(load: int) -> None:
    whole = mesh(NAMES) if not load else mesh(NAMES, *((x, y) for x in NAMES for y in NAMES if x != y))
    with pytest.raises(Skip):
        judged(replace(whole, load=load))
