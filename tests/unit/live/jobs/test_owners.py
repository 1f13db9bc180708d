"""A job is identified by its name and its owner: the claims of a process do not make it a rank of another
user's job.
"""

from typing import Any

import pytest
from msgspec.structs import replace

from doctor.hang.advice import advice_of
from doctor.hang.judge import Judgement, judge
from doctor.hang.judge.judgement import HangConfidence, HangState
from doctor.live.evidence import JobChoice, JobMember, LiveEvidence, Look
from tests.support.cases import cases_with
from tests.support.hang.reports import text
from tests.support.hang.written import changed, evidence, look, looked

JOB = "node1:29500"
HUNG = evidence(["waits", "sleeps", "waits", "waits"])
MOVES = evidence(["waits"] * 4, silent=0.1)


def bare(pid: int, does: str) -> dict[str, Any]:
    """The looks at a process without process groups and without connections."""
    looks = [
        replace(each, threads=each.threads[:1]) for each in (look(pid, does, False), look(pid, does, True))
    ]
    return {"a": looks[0], "b": looks[1]}


def claim(rank: int, world: int = 4, does: str = "stopped", **more: Any) -> JobMember:
    pid = more.pop("pid", 9_000 + rank)
    known = {"parent": 1, "job": JOB, "master": JOB, "user": "mallory", "age": 60.0, "command": "python -c x"}
    return JobMember(host="", pid=pid, rank=rank, world=world, **{**known, **bare(pid, does), **more})


def with_claims(seen: LiveEvidence, *claims: JobMember, host: str = "node2") -> LiveEvidence:
    hosts = tuple(
        replace(each, members=(*each.members, *(replace(one, host=host) for one in claims)))
        if each.host == host
        else each
        for each in seen.hosts
    )
    return replace(seen, hosts=hosts)


def on_host(seen: LiveEvidence, host: str, **more: Any) -> LiveEvidence:
    return changed(seen, lambda m: replace(m, **more) if m.host == host else m)


def accused(found: Judgement) -> list[tuple[int | None, str]]:
    return [(each.rank, each.host) for each in found.culprits]


FALSE = [
    (claim(4, 5),),
    (claim(1, does="sleeps"),),
    (claim(70, 100),),
    (claim(3),),
    (claim(4, 5), claim(1), claim(70, 100, does="sleeps"), claim(0)),
    (claim(4, 5, joins=True),),
]


@pytest.mark.parametrize("user", ["mallory", "alice"])
@pytest.mark.parametrize("false", FALSE)
def test_a_false_rank_changes_nothing(false: tuple[JobMember, ...], user: str) -> None:
    """A process of another user; or one of the same user, started by a shell in which a rank is exported."""
    said = tuple(replace(each, user=user) for each in false)
    found = judge(with_claims(HUNG, *said))
    assert (found.exit_code, accused(found)) == (1, [(1, "node1")])
    assert found.job is not None
    assert (found.job.world, len(found.job.ranks), found.job.missing) == (4, 4, ())
    assert "CONT" not in " ".join(advice_of(found).commands)
    assert (f"process {said[0].pid}" in " ".join(found.notes)) == (len(said) == 1)
    assert judge(with_claims(MOVES, *said)).exit_code == 0


def test_the_report_says_who_has_ranks_of_the_name() -> None:
    note = f"two users have ranks of {JOB}: alice (4) and mallory (1)"
    assert note in judge(with_claims(HUNG, claim(4, 5))).notes
    moves = judge(with_claims(MOVES, claim(4, 5)))
    assert note in moves.notes
    assert "Two users have ranks of" in text(moves, 200)


def test_a_false_job_beside_a_healthy_one_does_not_count() -> None:
    other = {"job": "node9:1", "master": "node9:1"}
    seen = with_claims(MOVES, claim(0, 2, **other), claim(1, 2, **other))
    found = judge(seen)
    assert (found.verdict, found.exit_code) == (HangState.MOVES, 0)
    assert any("mallory" in note and "not count" in note for note in found.notes)
    chosen = judge(seen, choice=JobChoice(user="mallory"))
    assert (chosen.exit_code, len(chosen.jobs)) == (3, 1), "who asks for it sees it"


@cases_with(bare)
def test_a_job_that_stands_still_at_its_very_start_counts(sign: dict[str, Any]) -> None:
    other = {"job": "node9:1", "master": "node9:1"}
    found = judge(with_claims(MOVES, claim(0, 2, pid=9_000, **{**other, **sign})))
    assert (found.verdict, found.exit_code, len(found.each)) == (HangState.SEVERAL, 3, 2)


@pytest.mark.parametrize("age", [10.0, 1e6])
def test_nobody_hides_ranks_that_have_not_connected_yet_by_taking_their_name(age: float) -> None:
    early = evidence(["sleeps"] * 2, device=True)
    old = changed(early, lambda m: replace(m, joins=True))
    false = [replace(each, launched=77, age=age) for each in (claim(0, 2), claim(1, 2))]
    found = judge(with_claims(old, *false))
    assert {job.owner for job in found.jobs} == {"alice", "mallory"}


def test_a_rank_that_was_stopped_before_it_connected() -> None:
    seen = evidence({0: "waits", 2: "waits", 3: "waits"}, world=4)
    found = judge(with_claims(seen, claim(1, user="alice"), host="node1"))
    assert (found.exit_code, accused(found), found.confidence) == (
        1,
        [(1, "node1")],
        HangConfidence.STRONG,
    )
    assert "CONT" not in " ".join(advice_of(found).commands)
    launched = judge(with_claims(seen, claim(1, user="alice", launched=77), host="node1"))
    assert (launched.exit_code, launched.confidence) == (1, HangConfidence.CERTAIN)
    assert "CONT" in advice_of(launched).commands[0]
    other = judge(with_claims(seen, claim(1), host="node1"))
    assert 1 not in [each.rank for each in other.named if each.pid is not None]


def test_who_keeps_others_waiting_goes_before_who_merely_says_its_number() -> None:
    seen = evidence({0: "waits", 1: "sleeps", 2: "waits"}, world=4)
    found = judge(with_claims(seen, claim(3, user="alice")))
    assert [each.rank for each in found.named] == [1]
    assert any("process 9003 is stopped: nothing but its variables" in note for note in found.notes)


@pytest.mark.parametrize("user", ["alice", "uid 1001", "bob"])
def test_a_user_may_have_another_name_on_another_host(user: str) -> None:
    found = judge(on_host(HUNG, "node2", user=user))
    assert found.job is not None
    assert (len(found.job.ranks), found.exit_code, accused(found)) == (4, 1, [(1, "node1")])
    assert not found.notes


def test_but_a_connection_that_anybody_can_make_is_no_proof() -> None:
    """The other rank has sent nothing, or its owner has ranks on that host, or both are on one host."""
    seen = on_host(HUNG, "node2", user="bob")

    def mute(look: Look) -> Look:
        return replace(look, connections=tuple(replace(each, received=8) for each in look.connections))

    assert len(judge(changed(seen, lambda member: looked(member, mute))).jobs) == 2
    first = HUNG.hosts[0]
    one = (replace(first.members[0], user="bob"), *first.members[1:])
    assert len(judge(replace(HUNG, hosts=(replace(first, members=one), *HUNG.hosts[1:]))).jobs) == 2


@pytest.mark.parametrize(("number", "sent"), [(70, "node1"), (70, "node2"), (3, "node2")])
def test_a_connection_that_is_made_up_on_another_host_is_no_proof(number: int, sent: str) -> None:
    """In a network of their own, anybody can use any host's address and make connections that look like a
    rank's.
    """
    victim = next(host for host in HUNG.hosts if host.host == sent).members[0]
    false = claim(number, launched=77, does="sleeps")
    assert victim.a is not None
    assert victim.b is not None
    false = replace(
        false, host="node3", a=replace(victim.a, pid=false.pid), b=replace(victim.b, pid=false.pid)
    )
    hosts = (
        HUNG.hosts
        if number > 3
        else tuple(
            replace(host, members=tuple(m for m in host.members if m.rank != number)) for host in HUNG.hosts
        )
    )
    seen = replace(HUNG, hosts=(*hosts, replace(hosts[0], host="node3", members=(false,))))
    found = judge(seen, choice=JobChoice(user=victim.user))
    assert found.job is not None
    assert false.pid not in [each.pid for each in found.job.ranks]
    if number > 3:
        assert (len(found.job.ranks), found.exit_code, accused(found)) == (4, 1, [(1, "node1")])


def test_ranks_below_one_launcher_are_one_job_whatever_user_each_became() -> None:
    first = HUNG.hosts[0]
    one = tuple(
        replace(m, launched=77, user=user) for m, user in zip(first.members, ("alice", "bob"), strict=True)
    )
    found = judge(replace(HUNG, hosts=(replace(first, members=one), *HUNG.hosts[1:])))
    assert (found.exit_code, accused(found)) == (1, [(1, "node1")])


def test_the_world_is_what_most_say() -> None:
    says = with_claims(MOVES, claim(3, 100, user="alice", joins=True))
    found = judge(says)
    assert found.job is not None
    assert (found.job.world, found.exit_code) == (4, 0)


def test_jobs_of_one_user_at_the_loopback_of_each_host_are_each_whole() -> None:
    one = evidence(["waits", "sleeps"], hosts=["node1"], job="localhost:29500")
    two = evidence(["waits", "waits"], hosts=["node2"], job="localhost:29500", device=True)
    found = judge(replace(one, hosts=(*one.hosts, *two.hosts), asked=("node1", "node2")))
    assert [job.hosts for job in found.jobs] == [("node1",), ("node2",)]
    assert found.exit_code == 1


def test_more_jobs_than_anybody_runs_leave_room_for_those_of_other_hosts() -> None:
    many = [claim(0, 1, pid=10_000 + n, job=f"x{n}:1", master=f"x{n}:1", joins=True) for n in range(2_000)]
    first, second = HUNG.hosts
    seen = with_claims(replace(HUNG, hosts=(second, first)), *many)
    found = judge(seen)
    assert (1, "node1") in accused(found)
    assert any("more than 256 jobs" in note for note in found.notes)
