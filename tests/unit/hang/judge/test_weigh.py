"""Reports of libraries beside the processes: they confirm or withdraw an accusation, but decide nothing."""

import json
from collections.abc import Sequence

import pytest
from msgspec.structs import replace

from doctor.hang.judge import judge
from doctor.hang.judge.judgement import Cause, HangConfidence, HangState, Judgement
from doctor.hang.report_json import hang_part
from doctor.live.evidence import LibraryText, LiveEvidence
from doctor.live.evidence_file import load
from doctor.live.libraries.opinions import Source
from tests.support.hang.reports import NODES
from tests.support.hang.reports import text as drawn
from tests.support.hang.trials import of, of_another_user
from tests.support.hang.written import changed, evidence, looked
from tests.support.library_texts import sample
from tests.support.paths import ROOT

ONE_SLEEPS = ["waits"] * 5 + ["sleeps"] + ["waits"] * 2
OTHER = {"op_type": "ALLREDUCE", "comm_ids": "all"}


def heard(seen: LiveEvidence, *said: LibraryText, host: int = 0) -> LiveEvidence:
    hosts = tuple(
        replace(each, libraries=(*each.libraries, *said)) if number == host else each
        for number, each in enumerate(seen.hosts)
    )
    return replace(seen, hosts=hosts)


def numbers(seen: LiveEvidence, *of: int, later: Sequence[int] = ()) -> LiveEvidence:
    """torch_npu's status: the last collective that each rank has begun; `later` is the second answer."""
    for rank, count in enumerate(of):
        for which in ("a", "b"):
            number = later[rank] if later and which == "b" else count
            state = {"last_comm_op": [{**OTHER, "pg_id": "0", "seq": number, "status": "start"}]}
            name = f"/save/torch_hccl_status-{rank}_10.0.0.1_{rank}_{len(of)}_{rank + 1}_1795284713000.log"
            seen = heard(seen, library(Source.TORCH_NPU, json.dumps(state), name, which=which))
    return seen


def crossed(seen: LiveEvidence, world: int, one: int, other: int) -> LiveEvidence:
    """`one` waits for `other` in one group, and `other` waits for `one` in another group."""
    for rank in range(world):
        for which in ("a", "b"):
            seqs = {one: (5, 4), other: (4, 5)}.get(rank, (5, 5))
            ops = [
                {**OTHER, "pg_id": str(group), "seq": seq, "status": "start" if seq == 5 else "end"}
                for group, seq in enumerate(seqs)
            ]
            name = f"/save/torch_hccl_status-{rank}_10.0.0.1_{rank}_{world}_{rank + 1}_1795284713000.log"
            said = library(Source.TORCH_NPU, json.dumps({"last_comm_op": ops}), name, which=which)
            seen = heard(seen, said)
    return seen


def behind(seen: LiveEvidence, rank: int, world: int = 8) -> LiveEvidence:
    return numbers(seen, *(56 if each == rank else 57 for each in range(world)))


def scheduler(seen: LiveEvidence, rank: int) -> LiveEvidence:
    return heard(seen, library(Source.SCHEDULER, sample("scheduler.log").replace("node: 3", f"node: {rank}")))


def library(source: Source, body: str, name: str = "x", *, which: str = "b") -> LibraryText:
    return LibraryText(
        source=source.value, name=name, text=body, which="a" if which == "a" else "b", at=1_763_629_200.0
    )


def bare(seen: LiveEvidence) -> LiveEvidence:
    """Without stacks, as if py-spy may not look."""

    return changed(seen, lambda member: looked(member, lambda look: replace(look, python=())))


def named(found: Judgement) -> list[int | None]:
    return [each.rank for each in found.named]


def said(found: Judgement) -> dict[str, tuple[bool, tuple[str, ...]]]:
    return {each.opinion.source.value: (each.confirms, each.against) for each in found.heard}


def text(found: Judgement, *, verbose: bool = False) -> str:
    """The text on one line."""
    return " ".join(drawn(found, 200, verbose=verbose).split())


def test_where_nothing_was_asked_nothing_is_said() -> None:
    found = judge(evidence(ONE_SLEEPS, NODES))
    assert found.heard == ()
    assert hang_part(found).libraries == ()
    assert "libraries" not in text(found)


def test_a_suspicion_that_a_library_confirms_is_strong() -> None:
    seen = bare(evidence(ONE_SLEEPS, NODES))
    alone, found = judge(seen), judge(behind(seen, 5))
    assert (alone.confidence, found.confidence) == (HangConfidence.SUSPECT, HangConfidence.STRONG)
    assert (named(found), found.exit_code) == ([5], 1)
    assert said(found) == {"torch_npu-status": (True, ())}
    assert "of node3 has not begun the collective in which the others are (confirms it)" in text(found)
    (library,) = hang_part(found).libraries
    assert (library.source, library.trust, library.ranks) == ("torch_npu-status", "strong", (5,))
    assert library.says.startswith("torch_npu's status files: rank 5 of node3")


def test_who_blames_others_as_well_makes_nothing_firmer() -> None:
    seen = bare(evidence(ONE_SLEEPS, NODES))
    found = judge(numbers(seen, 57, 57, 56, 57, 57, 56, 57, 57))
    assert (found.confidence, said(found)["torch_npu-status"]) == (HangConfidence.SUSPECT, (True, ()))


def test_connections_and_a_library_are_firmer_together_and_accuse_nobody() -> None:
    seen = of_another_user(of("lock", "ddp")[0].evidence)
    alone = judge(seen, limit=1.0)
    (suspect,) = alone.suspects
    assert (suspect.cause, alone.confidence) == (Cause.LAST, HangConfidence.SUSPECT)
    found = judge(numbers(seen, *(56 if rank == suspect.rank else 57 for rank in range(4))), limit=1.0)
    assert (found.suspects, found.culprits, found.exit_code) == (alone.suspects, (), 3)
    assert found.confidence is HangConfidence.STRONG
    assert found.sentence.startswith("The connections and torch_npu's status name the same rank")


@pytest.mark.parametrize("blind", [True, False])
def test_a_library_that_blames_another_leaves_it_undecided(blind: bool) -> None:
    seen = evidence(ONE_SLEEPS, NODES)
    found = judge(behind(bare(seen) if blind else seen, 2))
    assert (found.verdict, found.exit_code, found.confidence) == (
        HangState.HANG,
        3,
        HangConfidence.UNDECIDED,
    )
    assert (named(found), found.culprits) == ([5], ())
    line = "torch_npu's status blames rank 2 of node2, the processes rank 5"
    assert said(found) == {"torch_npu-status": (False, (line,))}
    assert found.sentence == f"It is not decided who keeps the job waiting: {line}."
    assert f"against {line}" in text(found)
    assert hang_part(found).libraries[0].against == (line,)


@pytest.mark.parametrize("fault", ["stopped", "ended", "stuck"])
@pytest.mark.parametrize("count", [(56, 57, 57, 57), (57,) * 4])
def test_no_library_overrides_the_state_of_a_process(fault: str, count: Sequence[int]) -> None:
    seen = evidence(["waits", fault, "waits", "waits"])
    alone, found = judge(seen), judge(numbers(seen, *count))
    assert (found.verdict, found.exit_code, found.confidence, found.named) == (
        alone.verdict,
        1,
        HangConfidence.CERTAIN,
        alone.named,
    )
    assert said(found)["torch_npu-status"][1], "it is shown all the same"


def test_no_library_overrides_a_cut_link() -> None:
    seen = of("netdrop", "tp")[0].evidence
    alone, found = judge(seen, limit=1.0), judge(numbers(seen, 57, 57, 57, 57), limit=1.0)
    assert alone.exit_code == found.exit_code == 1
    assert (found.named, found.confidence) == (alone.named, alone.confidence)
    assert found.named[0].cause is Cause.LINK


def test_all_in_the_same_operation_by_the_library_too() -> None:
    found = judge(numbers(evidence(["waits"] * 4), 57, 57, 57, 57))
    assert (found.exit_code, found.named) == (3, ())
    assert found.sentence.startswith("Every rank waits in the same operation: the fault is below Python")
    assert said(found) == {"torch_npu-status": (True, ())}


def test_somebody_outside_whose_device_has_the_operation_is_not_accused() -> None:
    """Hosts run ahead of their devices, so it may have launched the operation in which the others wait."""
    found = judge(numbers(evidence(ONE_SLEEPS, NODES), *(57,) * 8))
    assert (named(found), found.exit_code, found.confidence) == ([5], 3, HangConfidence.UNDECIDED)
    (line,) = said(found)["torch_npu-status"][1]
    assert line.endswith("sees all ranks in the same operation; by the processes, rank 5 has not come to it")


def test_a_rank_that_only_the_library_has_behind_is_undecided() -> None:
    found = judge(behind(evidence(["waits"] * 8), 3))
    assert (found.verdict, found.exit_code, found.named) == (HangState.HANG, 3, ())
    assert "by the processes, all wait in the same operation" in found.sentence


def test_different_operations_name_the_pair_and_accuse_nobody() -> None:
    found = judge(crossed(evidence(["waits"] * 4), 4, 1, 2))
    assert (found.verdict, found.exit_code, found.confidence) == (
        HangState.HANG,
        3,
        HangConfidence.UNDECIDED,
    )
    assert [(each.rank, each.cause) for each in found.named] == [(1, Cause.MISMATCH), (2, Cause.MISMATCH)]
    assert found.sentence.startswith("The ranks wait in different collectives")


def test_a_library_that_sees_the_job_move_protects_a_mere_suspect() -> None:
    moving = (tuple(range(50, 58)), tuple(range(51, 59)))
    seen = evidence(ONE_SLEEPS, NODES)
    found = judge(numbers(bare(seen), *moving[0], later=moving[1]))
    assert (named(found), found.exit_code, found.confidence) == ([5], 3, HangConfidence.UNDECIDED)
    sure = judge(numbers(seen, *moving[0], later=moving[1]))
    assert (named(sure), sure.exit_code, sure.confidence) == ([5], 1, HangConfidence.STRONG)
    line = ("torch_npu's status sees the job move; the processes do not",)
    assert said(sure)["torch_npu-status"][1] == said(found)["torch_npu-status"][1] == line


def test_what_cannot_be_used_is_what_was_not_read() -> None:
    found = judge(heard(evidence(ONE_SLEEPS), library(Source.TORCH_NPU, "{", which="a")))
    assert said(found) == {"torch_npu-status": (False, ())}
    why = "torch_npu's status files are not used"
    assert why not in text(found)
    assert why in text(found, verbose=True)
    assert "libraries" not in text(found, verbose=True)


def test_libraries_that_contradict_each_other_are_all_shown() -> None:
    found = judge(scheduler(behind(evidence(ONE_SLEEPS, NODES), 5), 2))
    assert (named(found), found.exit_code) == ([5], 3)
    shown = text(found)
    assert "MindSpore's scheduler blames rank 2 of node2; torch_npu's status does not" in shown
    assert "torch_npu's status blames rank 5 of node3; MindSpore's scheduler does not" in shown


def test_the_limit_comes_first() -> None:
    found = judge(behind(evidence(ONE_SLEEPS, NODES, silent=40.0), 5))
    assert (found.verdict, found.exit_code, found.culprits) == (HangState.WAITS, 0, ())
    moves = judge(behind(evidence(ONE_SLEEPS, NODES, silent=0.2), 5))
    assert (moves.verdict, moves.exit_code, moves.named) == (HangState.MOVES, 0, ())


def test_a_device_of_which_nobody_knows_the_rank_contradicts_nobody() -> None:
    line = sample("plog_heartbeat.log")
    found = judge(heard(evidence(ONE_SLEEPS, NODES), library(Source.HEARTBEAT, line)))
    assert (named(found), found.exit_code, said(found)) == ([5], 1, {"hccl-heartbeat": (False, ())})
    assert "HCCL's heartbeat: device 1 of 10.0.0.2 does not answer" in text(found)


class TestDevices:
    """If silence on TCP proves nothing."""

    SEEN = evidence(["item"] * 8, NODES, device=True)

    @pytest.mark.parametrize("apart", [2.0, 70.0])
    def test_a_strong_library_names_suspects(self, apart: float) -> None:
        seen = evidence(["item"] * 8, NODES, device=True, apart=apart)
        assert judge(seen).named == ()
        found = judge(behind(seen, 3))
        assert (named(found), found.culprits, found.exit_code) == ([3], (), 3)
        assert (found.named[0].cause, found.confidence) == (Cause.BEHIND, HangConfidence.UNDECIDED)
        assert "SUSPECT rank 3 on node2 (pid 4030) is behind the others, by torch_npu's" in text(found)

    def test_two_that_disagree_name_nobody(self) -> None:
        found = judge(scheduler(behind(self.SEEN, 3), 2))
        assert (found.named, found.exit_code) == ((), 3)

    def test_nobody_is_named_where_devices_still_begin_collectives(self) -> None:
        found = judge(numbers(self.SEEN, *range(50, 58), later=tuple(range(51, 59))))
        assert (found.named, found.exit_code) == ((), 3)


def on_gpus(name: str) -> LiveEvidence:
    return load(ROOT / "tests" / "samples" / "hang" / f"gpu-{name}.json.gz")


def test_of_two_that_wait_for_their_devices_the_library_knows_who_is_behind() -> None:
    """Rank 1 runs a kernel that does not end, outside collectives; both seem to wait for their devices."""
    seen = on_gpus("kernel")
    made = judge(seen)
    (named,) = made.named
    assert (named.rank, named.cause, made.confidence) == (1, Cause.BEHIND, HangConfidence.UNDECIDED)
    silent = replace(seen, hosts=tuple(replace(each, libraries=()) for each in seen.hosts))
    assert {each.rank for each in judge(silent).named} == {0, 1}


def test_a_rank_that_sleeps_while_another_waits_for_its_device() -> None:
    made = judge(on_gpus("sleeps"))
    (named,) = made.named
    assert (named.rank, made.confidence) == (1, HangConfidence.STRONG)
    assert any(each.confirms for each in made.heard)
