"""Two cycles of ranks that wait for each other, and one rank between them, which is in neither."""

from dataclasses import replace

from doctor.hang.judge.case import case_of
from doctor.hang.judge.decide import decide
from doctor.live.jobs.find import find_jobs
from doctor.live.libraries.groups import GroupStanding, culprits
from doctor.live.libraries.opinions import OpinionKind, Subject
from tests.support.hang.written import evidence

LINKED = ((0, 1), (1, 0), (0, 2), (2, 3), (3, 4), (4, 3))


def test_by_connections_alone() -> None:
    seen = evidence(["waits"] * 6)
    (job,) = find_jobs(seen)
    key = {rank.rank: (rank.host, rank.pid) for rank in job.ranks}
    case = case_of(seen, job)
    nowhere = tuple(replace(each, inside=None) for each in case.standings)
    case = replace(case, standings=nowhere, edges=frozenset((key[of], key[to]) for of, to in LINKED))
    assert {each.rank for each in decide(case, 60.0, False).named} == {0, 1, 3, 4}


def test_by_groups_of_which_a_library_tells() -> None:
    groups = [GroupStanding((Subject(rank=to),), frozenset({Subject(rank=of).key}), "") for of, to in LINKED]
    kind, behind, _ = culprits(groups)
    assert (kind, {each.rank for each in behind}) == (OpinionKind.MISMATCH, {0, 1, 3, 4})
    kind, behind, _ = culprits([*groups, GroupStanding((Subject(rank=9),), frozenset(), "")])
    assert (kind, [each.rank for each in behind]) == (OpinionKind.BLAMES, [9])
