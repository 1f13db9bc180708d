"""The page of the GPU proof, made from the reports of real runs."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from doctor.smoke.events import Collectives
from doctor.smoke.inject import KINDS
from doctor.smoke.onhost.shape import CellShape
from doctor.smoke.result import SmokeResult
from tests.gpu_proof.attempts import (
    Attempt,
    examined,
    fits,
    healthy,
    heard,
    injected,
    left_out,
    place_of,
    shape_of,
    shared,
    too_few,
)
from tests.gpu_proof.machine import Machine
from tests.gpu_proof.page import page
from tests.support.cases import cases, from_cases
from tests.support.envelopes import as_data
from tests.support.recordings import recording, report
from tests.support.smoke.frozen import behind, died, frozen
from tests.support.smoke.results import healthy as healthy_run
from tests.support.smoke.results import plan_of, with_rank
from tests.trials.outcome import Ran

RECORDINGS = Path(__file__).parents[2] / "samples" / "recordings"
H100S = from_cases(__file__, "H100S", Machine)
NCCL = from_cases(__file__, "NCCL", str)
"""torch's error, and NCCL's message in it (init.cc)."""


def shape(ranks: int, tp: int, **more: Any) -> CellShape:
    return CellShape(ranks // tp // more.get("pp", 1), tp, (ranks,), 0, 0, **more)


def ran(name: str, code: int = 0, **changed: Any) -> Ran:
    """A run with one of the recorded reports."""
    kept = json.loads(gzip.decompress((RECORDINGS / f"{name}.report.json.gz").read_bytes()))
    return Ran(code, kept | changed, "", 12.34)


def refused(text: str) -> Ran:
    """Both ranks of one host ended with this error while they joined."""
    result = frozen(plan_of(1, 2), {0: behind("join"), 1: behind("join")}, kind="exit")
    for rank in range(2):
        result = died(result, rank, error=("DistBackendError", text))
    seen = report(recording(["n1"], smoke=(result,), smoke_wanted=True))
    return Ran(1, as_data(seen), "", 5.0)


def test_each_rank_must_have_heard_of_its_network() -> None:
    whole = result_of(healthy_run(plan_of(1, 2, backend="nccl")), 0, 1)
    one = result_of(healthy_run(plan_of(1, 2, backend="nccl")), 1)
    assert [heard([each]).right for each in (whole, one)] == [True, False]
    assert heard([whole]).found == "Using network Socket; via NET/Socket/0"
    assert heard([]).right is False


def result_of(result: SmokeResult, *ranks: int) -> SmokeResult:
    """These ranks heard NCCL."""
    for rank in ranks:
        told = Collectives(9, network=("Using network Socket", "via NET/Socket/0"))
        result = with_rank(result, rank, collectives=told)
    return result


def test_an_examination_is_right_if_it_recognises_the_gpus() -> None:
    both = ran("gpu-healthy")
    assert both.report is not None
    alone = both.report["hosts"][:1]
    attempt = examined(ran("gpu-healthy", hosts=alone))
    assert attempt.right
    assert attempt.found == "healthy, product nvidia"
    assert not examined(ran("one-host")).right
    assert examined(ran("one-host"), on_gpus=False).right
    broke = both.report["summary"] | {"crash": 1}
    assert not examined(ran("gpu-healthy", hosts=alone, summary=broke)).right


@cases
def test_a_smoke_run_is_right_only_if_it_was_made_and_passed(name: str, right: bool, found: str) -> None:
    attempt = healthy(ran(name))
    assert attempt.right is right
    assert attempt.found.startswith(found)


def test_a_run_that_was_not_made_is_not_right() -> None:
    assert not healthy(ran("smoke-not-made", findings=[])).right
    assert not healthy(Ran(70, None, "it broke", 1.0)).right
    assert healthy(Ran(70, None, "it broke", 1.0)).found == "no report: it broke"


def test_the_shape_is_that_of_the_run_without_a_fault() -> None:
    assert shape_of(ran("lab-smoke-healthy")) == shape(8, 2)


OF_RANKS = from_cases(__file__, "OF_RANKS", set[str])
OF_REPLICAS = {"same-data", "no-sync", "lost-part", "no-update", "param-bit"}


@pytest.mark.parametrize(
    ("formed", "left"),
    [
        (shape(4, 2), {"peer", "tag"}),
        (shape(2, 2), OF_REPLICAS | {"slow", "peer", "tag"}),
        (shape(1, 1), OF_RANKS | OF_REPLICAS | {"slow", "peer", "tag"}),
    ],
)
def test_what_takes_more_ranks_is_left_out(formed: CellShape, left: set[str]) -> None:
    assert {kind for kind in KINDS if not fits(kind, formed)} == left


def test_a_call_of_a_group_is_tried_where_the_group_is_formed() -> None:
    staged = shape(4, 2, pp=2, micro=4)
    assert [word for word in ("tag", "skip/pp", "op/tp", "skip/cp") if fits(word, staged)] == [
        "tag",
        "skip/pp",
        "op/tp",
    ]
    assert not fits("no-sync", staged)
    assert place_of("skip/pair", staged) == "skip@3/pair"
    assert too_few("skip/cp") == "no rank is in a group cp here"


def test_a_fault_is_right_if_its_rank_is_named_and_nobody_else() -> None:
    right = injected("kill", shape(2, 1), ran("lab-smoke-kill", 1))
    assert right.right
    assert right.tried == "--inject kill@1"
    assert right.expected == "smoke-crash, rank 1, nobody else"
    assert not injected("kill", shape(1, 1), ran("lab-smoke-kill", 1)).right
    assert not injected("stuck", shape(2, 1), ran("lab-smoke-kill", 1)).right
    missed = injected("kill", shape(2, 1), ran("lab-smoke-healthy", 1))
    assert (missed.right, missed.found) == (False, "nothing was found")


def test_the_only_rank_is_named_or_all_ranks_are() -> None:
    one = ran("lab-smoke-kill", 1)
    assert one.report is not None
    (found,) = [each for each in one.report["findings"] if each["status"] == "fail"]
    nobody = found | {"check": "smoke-loss-nan", "hosts": [], "nodeset": "", "where": []}
    lone = ran("lab-smoke-kill", 1, findings=[nobody])
    assert injected("nan", shape(1, 1), lone).right
    assert injected("nan", shape(1, 1), lone).expected == "smoke-loss-nan, the only rank, nobody else"
    assert not injected("nan", shape(2, 1), lone).right


def test_the_refusal_of_nccl_is_shown_in_its_words() -> None:
    attempt = shared(refused(NCCL))
    assert attempt.right
    assert attempt.found == (
        "NCCL refuses: Duplicate GPU detected : rank 0 and rank 1 both on CUDA device 1b000"
    )
    assert attempt.code == 1


def test_another_error_of_ranks_that_share_a_gpu_is_wrong() -> None:
    attempt = shared(refused("CUDA error: invalid device ordinal"))
    assert not attempt.right
    assert "invalid device ordinal" in attempt.found
    assert shared(ran("lab-smoke-healthy")).right


def test_the_page_counts_what_was_tried_and_names_no_machine() -> None:
    attempts = [
        healthy(ran("lab-smoke-healthy")),
        injected("kill", shape(2, 1), ran("lab-smoke-kill", 1)),
        injected("stuck", shape(2, 1), ran("lab-smoke-kill", 1)),
        left_out("skip", "it takes 2 ranks"),
        Attempt("a", "b | c", "d\ne", True, 0, 1.0),
    ]
    text = page(H100S, "nccl", attempts, "2026-11-20")
    lines = text.splitlines()
    assert lines[0] == "# The smoke run over nccl, on one machine"
    assert lines[2] == "2026-11-20. As expected: 3 of 4 that were tried."
    assert lines[4] == "| GPUs | driver | CUDA | torch | NCCL | Python | cluster-doctor |"
    assert lines[6].startswith("| 2 × NVIDIA H100 80GB HBM3 | 550.90.12 | 12.4 | 2.6.0+cu124 | 2.21.5 |")
    assert lines[8] == "| what was tried | expected | found | as expected | exit code | seconds |"
    assert lines[10] == "| smoke run without a fault | it passes | it passes | yes | 0 | 12.3 |"
    assert lines[11].endswith("| yes | 1 | 12.3 |")
    assert lines[12].endswith("| **no** | 1 | 12.3 |")
    assert lines[13] == "| --inject skip | smoke-mismatch | not tried: it takes 2 ranks |  |  |  |"
    assert lines[14] == r"| a | b \| c | d e | yes | 0 | 1.0 |"
    assert "node1" not in text
    assert "198.18" not in text
