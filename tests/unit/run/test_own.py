"""Which ranks are those of the command of `doctor run`, and what is said of those that outlive it."""

from collections.abc import Iterable

import pytest
from msgspec.structs import replace

from doctor.hang.judge import HangState, judged
from doctor.live.evidence import JobMember, LiveEvidence
from doctor.run.look import RankElsewhere, still_runs
from doctor.run.own import OwnCommand, own_part, own_pids
from tests.support.cases import cases
from tests.support.hang.written import both, evidence

HUNG = ["waits", "sleeps", "waits", "waits"]
OTHERS = 9_000
"""The PIDs of a second job begin after these."""


def others(seen: LiveEvidence, user: str = "bob") -> LiveEvidence:
    def shifted(each: JobMember) -> JobMember:
        def pid(look: object) -> object:
            return look and replace(look, pid=look.pid + OTHERS)  # type: ignore[attr-defined, type-var]

        return replace(each, pid=each.pid + OTHERS, user=user, a=pid(each.a), b=pid(each.b))

    hosts = (replace(host, members=tuple(map(shifted, host.members))) for host in seen.hosts)
    return replace(seen, hosts=tuple(hosts))


def is_own(ranks: Iterable[int], pids: range = range(OTHERS)) -> object:
    wanted = {*ranks}
    return lambda member: member.rank in wanted and member.pid in pids


def left(seen: LiveEvidence, *ranks: int) -> list[tuple[int | None, int]]:
    part = own_part(seen, is_own(ranks))  # type: ignore[arg-type]
    return [(each.rank, each.pid // OTHERS) for host in part.hosts for each in host.members]


@pytest.mark.parametrize("user", ["bob", "alice"])
def test_a_job_of_others_is_not_judged(user: str) -> None:
    seen = others(evidence(HUNG), user)
    part = own_part(seen, lambda _: False)
    assert judged(part).verdict is HangState.NO_JOB
    assert own_pids(seen, lambda _: False) == {}


@pytest.mark.parametrize(("user", "job"), [("bob", "node1:29500"), ("alice", "node1:29600")])
def test_beside_a_job_of_others_the_own_one_is_judged(user: str, job: str) -> None:
    seen = both(evidence(HUNG), others(evidence(["waits"] * 4, job=job, silent=0.1), user))
    assert judged(seen).verdict is HangState.SEVERAL
    part = own_part(seen, is_own([0]))  # type: ignore[arg-type]
    assert judged(part).verdict is HangState.HANG
    assert [each.rank for each in judged(part).culprits] == [1]


def test_in_containers_jobs_of_one_user_may_have_one_name() -> None:
    """Two jobs of four on one host: rank 1 of ours is gone, and theirs is not taken for it."""
    ours = evidence({0: "waits", 2: "waits", 3: "waits"}, ["node1"], world=4, job="localhost:29500")
    theirs = others(evidence(HUNG, ["node1"], job="localhost:29500"), "alice")
    assert left(both(ours, theirs), 0, 2, 3) == [(0, 0), (2, 0), (3, 0)]


def test_what_has_no_connection_yet_is_bound_by_its_name_on_other_hosts_only() -> None:
    def unconnected(each: JobMember) -> JobMember:
        assert each.a is not None
        assert each.b is not None
        return replace(each, a=replace(each.a, connections=()), b=replace(each.b, connections=()))

    seen = evidence(HUNG)
    hosts = (replace(host, members=tuple(map(unconnected, host.members))) for host in seen.hosts)
    assert left(replace(seen, hosts=tuple(hosts)), 0) == [(0, 0), (2, 0), (3, 0)]


def command(**more: object) -> OwnCommand:
    about = {
        "processes": (["pid:[1]", "7", "99"],),
        "ends": ("10.0.0.9 40000 10.0.0.1 22", "10.0.0.9 40001 172.16.0.2 22"),
        "sruns": (("login", "40100"),),
        "uid": 1000,
        "here": frozenset({"node3"}),
        "homes": {"10.0.0.1": frozenset({"node1"}), "10.0.0.2": frozenset({"node2"})},
        "environ": {},
        **more,
    }
    return OwnCommand(**about)  # type: ignore[arg-type]


def test_a_host_is_told_only_what_may_lead_to_it() -> None:
    told = {host: command().told(host) or {} for host in ("node1", "node2", "node3")}
    assert [len(told[host]["ends"]) for host in told] == [2, 1, 1], "172.16.0.2 may be any of them"
    assert [len(told[host]["processes"]) for host in told] == [0, 0, 1]
    nothing = command(ends=("10.0.0.9 40000 10.0.0.1 22",))
    assert nothing.told("node2") is None


@cases
def test_a_host_can_claim_only_what_it_was_told(host: str, how: str, is_its: bool) -> None:
    member = JobMember(host=host, pid=1, parent=0, job="j", started=how)
    assert command().started(member) is is_its


def test_in_a_step_that_starts_doctor_on_each_host_the_step_is_the_commands() -> None:
    environ = {"SLURM_JOB_ID": "7", "SLURM_STEP_ID": "3", "SLURM_STEP_NUM_TASKS": "2"}
    for tasks, step in (("2", "3"), ("1", "")):
        told = command(environ={**environ, "SLURM_STEP_NUM_TASKS": tasks}).told("node1")
        assert told is not None
        assert told["slurm"] == {"job": "7", "step": step, "sruns": (("login", "40100"),)}


def test_what_outlives_the_command_is_named_with_the_line_that_ends_it() -> None:
    seen = evidence(["waits", "waits", "waits"], ["node1", "node2", "node3"], unreached={"node3": "gone"})
    hosts = (
        replace(host, members=tuple(replace(each, start=5) for each in host.members)) for host in seen.hosts
    )
    ranks = [
        RankElsewhere("node1", 4000, 5, 0, "ssh node1 kill 4000"),
        RankElsewhere("node1", 4001, 5, 7, "ssh node1 kill 4001"),
        RankElsewhere("node2", 4010, 6, 1, "ssh node2 kill 4010"),
        RankElsewhere("node3", 4020, 5, None, ""),
    ]
    assert [*still_runs(ranks, replace(seen, hosts=tuple(hosts)))] == [
        "rank 0 on node1 still runs; to end it: ssh node1 kill 4000",
        "node3 pid 4020 (process 4020) may still run: its host did not answer",
    ]
