"""torch_npu's status files, and lines of logs; and opinions that contradict each other."""

import json

import pytest
from msgspec import structs

from doctor.live.evidence import LibraryText
from doctor.live.jobs.find import find_jobs
from doctor.live.libraries.consult import contradict, opinions
from doctor.live.libraries.opinions import Opinion, OpinionKind, Source, Trust
from doctor.live.libraries.torch_npu import FILE
from tests.support.library_texts import SAMPLES, Ranks, job_of, sample, seen, text

STATUS = "torch_hccl_status-0_10.0.0.1_0_2_4711_1795284713000.log"


def said(job: Ranks, *texts: LibraryText) -> tuple[Opinion, ...]:
    return opinions(seen(job, *texts), job)


def status(rank: int, *operations: tuple[str, str, int, str], which: str = "b") -> LibraryText:
    """The sample file with other operations: group, members, number, status."""
    real = json.loads(sample(STATUS))
    first = real["last_comm_op"][0]
    real["last_comm_op"] = [
        {**first, "pg_id": group, "comm_ids": ids, "seq": number, "status": state}
        for group, ids, number, state in operations
    ]
    name = f"/save/torch_hccl_status-{rank}_10.0.0.1_{rank}_4_{100 + rank}_1795284713000.log"
    return text(Source.TORCH_NPU, json.dumps(real), name=name, which=which, pid=100 + rank)


def twice(*each: tuple[int, tuple[str, str, int, str]]) -> list[LibraryText]:
    return [status(rank, operation, which=which) for rank, operation in each for which in ("a", "b")]


def test_the_name_of_a_status_file() -> None:
    match = FILE.match("/some/where/" + STATUS)
    assert match is not None
    assert match.groups() == ("0", "2", "4711")
    assert FILE.match(STATUS + ".tmp") is None


def test_the_smallest_number_is_behind() -> None:
    ops = [(rank, ("0", "all", 57, "start")) for rank in range(3)]
    (found,) = said(job_of(4), *twice(*ops, (3, ("0", "all", 56, "end"))))
    assert (found.kind, found.ranks, found.trust) == (OpinionKind.BLAMES, {3}, Trust.STRONG)
    assert found.evidence == ("group 0 (all): 3 in number 57 (ALLREDUCE); rank 3 of node1 at 56",)


def test_all_have_begun_it() -> None:
    (found,) = said(job_of(4), *twice(*[(rank, ("0", "all", 57, "start")) for rank in range(4)]))
    assert (found.kind, found.subjects) == (OpinionKind.LAUNCHED, ())


def test_a_file_that_is_missing_leaves_it_open() -> None:
    (found,) = said(job_of(4), *twice(*[(rank, ("0", "all", 57, "start")) for rank in range(3)]))
    assert (found.kind, found.subjects) == (OpinionKind.SILENT, ())


def test_numbers_that_change_blame_nobody() -> None:
    first = [status(rank, ("0", "all", 56 + rank, "start"), which="a") for rank in range(2)]
    then = [status(rank, ("0", "all", 57 + rank, "start")) for rank in range(2)]
    (found,) = said(job_of(2), *first, *then)
    assert (found.kind, found.subjects) == (OpinionKind.MOVES, ())


@pytest.mark.parametrize("body", ["", "{", '{"last_comm_op": [{"seq": -1, "pg_id": "0"}]}', "[" * 99_999])
def test_status_files_of_another_form(body: str) -> None:
    texts = [text(Source.TORCH_NPU, body, name=STATUS, which=which, pid=100) for which in "ab"]
    (found,) = said(job_of(1), *texts)
    assert found.kind is OpinionKind.SILENT


def test_a_place_that_lost_its_heartbeat() -> None:
    job = job_of(4, 2)
    (found,) = said(job, text(Source.HEARTBEAT, sample("plog_heartbeat.log"), pid=100))
    assert (found.kind, found.trust) == (OpinionKind.BLAMES, Trust.STRONG)
    (subject,) = found.subjects
    assert (subject.host, subject.device) == ("node2", "1")
    assert found.words == "HCCL's heartbeat: device 1 of node2 does not answer."
    assert str(subject) == "device 1 of node2"


def test_a_place_that_is_stuck_is_a_vote() -> None:
    (found,) = said(job_of(4, 2), text(Source.HEARTBEAT, sample("plog_stuck.log"), pid=100))
    assert (found.trust, "is stuck" in found.words) == (Trust.VOTE, True)


def test_the_node_that_the_scheduler_misses() -> None:
    (found,) = said(job_of(4), text(Source.SCHEDULER, sample("scheduler.log")))
    assert (found.kind, found.ranks, found.trust) == (OpinionKind.BLAMES, {3}, Trust.STRONG)
    (found,) = said(job_of(2), text(Source.SCHEDULER, sample("scheduler.log")))
    assert (found.ranks, found.trust) == (set(), Trust.VOTE)


@pytest.mark.parametrize("source", [Source.HEARTBEAT, Source.SCHEDULER])
@pytest.mark.parametrize(
    "body",
    [
        "",
        "Cluster Exception Location[IP/ID]:[" * 9_000,
        "The node: " * 9_000,
        "The node: \x1b[31m is timed out",
    ],
)
def test_logs_that_name_nobody(source: Source, body: str) -> None:
    assert said(job_of(4), text(source, body)) == ()


def test_opinions_that_agree() -> None:
    ops = [(rank, ("0", "all", 57, "start")) for rank in range(3)]
    late = twice(*ops, (3, ("0", "all", 56, "end")))
    found = said(job_of(4), *late, text(Source.SCHEDULER, sample("scheduler.log")))
    assert [each.against for each in found] == [(), ()]


def test_what_a_job_has_called_its_groups_cannot_write_to_a_terminal() -> None:
    ops = [(rank, ("\x1b[31mred\n", "all", 57, "start")) for rank in range(3)]
    (found,) = said(job_of(4), *twice(*ops, (3, ("\x1b[31mred\n", "all", 56, "end"))))
    assert found.ranks == {3}
    assert found.evidence[0].isprintable()


def test_the_job_that_the_judgement_finds() -> None:
    small = job_of(4)
    evidence = seen(small, text(Source.SCHEDULER, sample("scheduler.log")))
    (job,) = find_jobs(evidence)
    assert opinions(evidence, job.ranks) == opinions(evidence, small)


def test_nothing_said_is_no_opinion() -> None:
    assert said(job_of(4)) == ()
    assert SAMPLES.is_dir()


def test_one_that_sees_all_move_contradicts_whoever_blames_a_rank() -> None:
    moves, blames = (
        Opinion(source=Source.TORCH_NPU, trust=Trust.STRONG, kind=kind, words="")
        for kind in (OpinionKind.MOVES, OpinionKind.BLAMES)
    )
    assert contradict(moves, blames)
    assert not contradict(moves, structs.replace(moves, source=Source.HEARTBEAT))


def test_all_whom_the_heartbeat_names_are_named() -> None:
    (found,) = said(job_of(4), text(Source.HEARTBEAT, sample("plog_heartbeat.log")))
    assert found.more == 0
