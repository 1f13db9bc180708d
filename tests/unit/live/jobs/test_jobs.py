"""Which job is chosen, which ranks are missing, and what a host that did not answer means."""

from msgspec.structs import replace

from doctor.hang.advice import advice_of
from doctor.hang.judge import judge
from doctor.hang.judge.judgement import Cause, HangConfidence, HangState
from doctor.live.evidence import HostEvidence, JobChoice, JobMember, LiveEvidence, Thread
from doctor.live.jobs.find import find_jobs
from tests.support.cases import cases
from tests.support.hang.written import both, changed, evidence

NODES = ["node1", "node2", "node3", "node4"]
REFUSED = "connection refused on port 22"


def test_no_job() -> None:
    found = judge(LiveEvidence(started="2026-11-20T09:00:00Z", asked=("node1",)))
    assert (found.verdict, found.exit_code, found.sentence) == (HangState.NO_JOB, 3, "No host answered.")
    found = judge(evidence([], hosts=["node1"], world=1))
    assert (found.verdict, found.exit_code) == (HangState.NO_JOB, 3)


def test_several_jobs_are_listed_and_one_can_be_chosen() -> None:
    other = evidence(["waits", "waits"], job="node1:29600", silent=0.1)
    other = changed(other, lambda m: replace(m, pid=m.pid + 9_000))
    seen = both(evidence(["waits", "sleeps"]), other)
    found = judge(seen)
    assert (found.verdict, found.exit_code, len(found.jobs)) == (HangState.SEVERAL, 1, 2)
    assert ([each.rank for each in found.culprits], found.sentence) == (
        [1],
        "2 jobs run here: 1 hangs, 1 moves.",
    )
    assert judge(seen, choice=JobChoice(master_port=29600)).verdict is HangState.MOVES
    assert judge(seen, choice=JobChoice(pid=4010)).exit_code == 1
    assert judge(seen, choice=JobChoice(pid=1)).verdict is HangState.NO_JOB
    assert judge(seen, choice=JobChoice(pid=4010, master_port=29600)).verdict is HangState.NO_JOB


def test_any_process_of_its_tree_chooses_a_job() -> None:
    seen = evidence(["waits", "sleeps"])
    below = changed(seen, lambda m: replace(m, above=(100, 90)))
    assert judge(below, choice=JobChoice(pid=90)).exit_code == 1
    assert judge(seen, choice=JobChoice(pid=100)).exit_code == 1
    orphans = changed(seen, lambda m: replace(m, parent=1))
    assert judge(orphans, choice=JobChoice(pid=1)).verdict is HangState.NO_JOB


def test_the_same_local_name_on_two_hosts_is_two_jobs() -> None:
    one = evidence(["waits", "sleeps"], hosts=["node1"], job="localhost:29500")
    two = evidence(["waits", "waits"], hosts=["node2"], job="localhost:29500")
    jobs = find_jobs(replace(one, hosts=(*one.hosts, *two.hosts)))
    assert [job.hosts for job in jobs] == [("node1",), ("node2",)]


@cases
def test_a_rank_without_a_process_on_a_host_that_answered_is_gone(
    missing: int, hosts: list[str], home: str
) -> None:
    ranks = {rank: "waits" for rank in range(8) if rank != missing}
    found = judge(evidence(ranks, hosts, world=8))
    assert found.job is not None
    assert found.job.gone == ((missing, home),)
    assert [(each.rank, each.host, each.pid, each.cause) for each in found.culprits] == [
        (missing, home, None, Cause.GONE)
    ]
    assert (found.exit_code, found.confidence) == (1, HangConfidence.STRONG)


def test_not_in_a_job_that_has_just_been_started() -> None:
    found = judge(evidence({0: "waits", 1: "waits", 3: "waits"}, ["node1"], world=4, age=20.0))
    assert not found.culprits


def test_the_ranks_of_hosts_that_were_not_asked_are_not_gone() -> None:
    ranks = dict.fromkeys(range(4), "waits")
    seen = evidence(ranks, NODES[:2], world=8)
    only = replace(seen, hosts=seen.hosts[:1], asked=("node1",))
    found = judge(only)
    assert found.job is not None
    assert found.job.missing == (4, 5, 6, 7)
    assert not found.job.gone
    assert (found.exit_code, found.culprits) == (3, ())


def test_a_launcher_that_may_have_had_the_missing_ranks_is_noted() -> None:
    """Its ranks have ended, and it waits for the other hosts."""
    seen = evidence(dict.fromkeys(range(4), "waits"), NODES[:2], world=8)
    said = "torchrun (pid 7, root) has no rank here: it is still starting some, or waits for other hosts"
    empty = HostEvidence(host="node3", unread=(said,))
    found = judge(replace(seen, hosts=(seen.hosts[0], empty), asked=("node1", "node3")))
    assert found.notes[-1] == f"node3: {said}"
    assert all(said not in note for note in judge(evidence(["waits"] * 8, NODES)).notes)


def test_nor_is_a_rank_that_may_as_well_be_elsewhere() -> None:
    """Three of eight ranks on one host: nothing shows that a fourth one was there."""
    found = judge(evidence(dict.fromkeys(range(3), "waits"), ["node1"], world=8))
    assert found.job is not None
    assert found.job.missing == (3, 4, 5, 6, 7)
    assert not found.job.gone


def test_ranks_of_a_host_that_did_not_answer_are_unknown() -> None:
    found = judge(evidence(["waits"] * 8, NODES, unreached={"node3": REFUSED}))
    assert (found.verdict, found.exit_code, found.culprits) == (HangState.HANG, 3, ())
    assert found.notes == ("ranks 4-5 could not be looked at (a host did not answer) and may be the cause",)
    assert found.unreached == (("node3", REFUSED),)


def test_and_protect_those_who_look_guilty_unless_that_is_certain() -> None:
    sleeps = ["waits", "sleeps"] + ["waits"] * 6
    found = judge(evidence(sleeps, NODES, unreached={"node3": REFUSED}))
    assert (found.exit_code, found.culprits, [each.rank for each in found.suspects]) == (3, (), [1])
    stopped = ["waits", "stopped"] + ["waits"] * 6
    found = judge(evidence(stopped, NODES, unreached={"node3": REFUSED}))
    assert (found.exit_code, [each.rank for each in found.culprits]) == (1, [1])


def test_a_job_that_seems_to_move_is_not_called_fine_without_its_host() -> None:
    found = judge(evidence(["waits"] * 8, NODES, silent=0.1, unreached={"node3": REFUSED}))
    assert (found.verdict, found.exit_code) == (HangState.MOVES, 3)


def test_ranks_without_a_number_may_be_those_that_are_missing() -> None:
    seen = evidence(["waits", "waits", "sleeps", "waits"])
    found = judge(changed(seen, lambda m: replace(m, rank=None) if m.rank in (1, 2) else m))
    assert found.job is not None
    assert not found.job.missing
    assert [(each.rank, each.pid) for each in found.culprits] == [(None, 4020)]


def test_the_only_rank_without_a_number_has_the_only_number_left() -> None:
    seen = evidence(["waits", "waits", "sleeps", "waits"])
    found = judge(changed(seen, lambda m: replace(m, rank=None) if m.rank == 2 else m))
    assert [(each.rank, each.pid) for each in found.culprits] == [(2, 4020)]
    without = judge(changed(seen, lambda m: replace(m, rank=None, world=None) if m.rank == 2 else m))
    assert [(each.rank, each.pid) for each in without.culprits] == [(2, 4020)]


def test_a_local_process_that_was_not_recognised_may_be_a_rank() -> None:
    """Then nobody says "every rank" or "the arguments"."""
    seen = evidence(["waits", "waits", "waits"], ["node1"])
    assert "in the library, unless their arguments differ" in judge(seen).sentence
    seen = changed(seen, lambda m: replace(m, rank=None, world=None, job="started by process 9 on node1"))
    assert "in the library, unless their arguments differ" in judge(seen).sentence, (
        "all their connections lead to ranks"
    )
    (host,) = seen.hosts
    left = replace(host, members=host.members[:2], addresses=("10.0.0.1",))
    found = judge(replace(seen, hosts=(left,)))
    assert found.exit_code == 3
    assert found.sentence == "Every rank that was found waits in the same operation."
    assert found.notes == (
        "node1: 2 ranks are connected to a local process that was not recognised, and that may be a rank",
    )
    assert not any("check" in command for command in advice_of(found).commands)


def test_ranks_without_a_name_of_their_job_are_joined_by_their_connections() -> None:
    """Such as actors of Ray, which each host's raylet starts."""
    seen = changed(
        evidence(["waits", "waits", "waits", "sleeps"]),
        lambda m: replace(m, rank=None, world=None, master="", job=f"started by process 100 on {m.host}"),
    )
    found = judge(seen)
    assert found.job is not None
    assert ([each.pid for each in found.culprits], found.job.hosts) == ([4030], ("node1", "node2"))
    other = changed(seen, lambda m: replace(m, user="bob") if m.host == "node2" else m)
    assert len(judge(other).jobs) == 2


def test_a_host_may_claim_a_world_of_any_size() -> None:
    found = judge(evidence({0: "waits", 1: "sleeps"}, ["node1"], world=10_000_000))
    assert found.job is not None
    assert found.job.missing == ()


def test_the_processes_of_spawn_are_counted_from_the_host_of_the_store() -> None:
    """Their stacks tell the number on their host; the world is unknown, and so is the number of the host."""

    def spawned(member: JobMember) -> JobMember:
        store = Thread(tid=9, name="pt_tcpstore_uv", state="S")
        assert member.rank is not None
        looks = [
            replace(look, threads=(*look.threads, *([store] if member.rank == 2 else []))) if look else None
            for look in (member.a, member.b)
        ]
        name = f"started by process 100 on {member.host}"
        told = {"rank": None, "local": member.rank % 2, "world": None, "master": "", "job": name}
        return replace(member, a=looks[0], b=looks[1], **told)

    seen = changed(evidence(["waits", "waits", "waits", "sleeps"]), spawned)
    assert [(each.rank, each.pid) for each in judge(seen).culprits] == [(1, 4030)]
    (alone,) = changed(evidence(["waits", "waits", "waits", "sleeps"], ["node1"]), spawned).hosts[:1]
    assert [each.rank for each in judge(replace(seen, hosts=(alone,))).culprits] == [None], "two are number 1"
    without = changed(seen, lambda m: replace(m, a=None, b=m.b and replace(m.b, threads=m.b.threads[:4])))
    assert {each.rank for each in judge(without).stands.ranks} == {None}
