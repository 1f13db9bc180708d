"""Real jobs in which one rank works for a long time, and real hangs that look like work."""

import shutil
from collections.abc import Callable
from typing import Any

import pytest

from tests.process.hang.test_command import judged
from tests.support.cases import cases
from tests.support.hang.named import culprits, suspects
from tests.support.hang.ranks import RunningJob, make_job
from tests.support.paths import ROOT

__all__ = ["make_job"]

pytestmark = pytest.mark.slow

SCRIPT = ROOT / "tests" / "support" / "hang" / "work.py"
LONG = pytest.mark.long


def each(quick: str, *long: str) -> list[Any]:
    return [quick, *(pytest.param(kind, marks=LONG) for kind in long)]


def seen(make_job: Callable[..., RunningJob], kind: str) -> tuple[int, dict[str, Any]]:
    job = make_job(script=SCRIPT, KIND=kind)
    job.hangs()
    return judged(job, "--limit", "1")


@cases
def test_who_gets_something_done_works(kind: str, make_job: Callable[..., RunningJob]) -> None:
    code, said = seen(make_job, kind)
    assert culprits(said) == []
    assert (code, said["hang"]["state"]) == (0, "waits"), said
    assert [one["rank"] for one in suspects(said)] == [1]


@cases
def test_what_may_be_work_is_not_accused(kind: str, make_job: Callable[..., RunningJob]) -> None:
    needs = {"judge_by_curl": "curl", "compile_by_gcc": "gcc"}.get(kind)
    if needs and not shutil.which(needs):
        pytest.skip(f"{needs} is not installed")
    if kind == "numpy_alone":
        pytest.importorskip("numpy")
    code, said = seen(make_job, kind)
    assert culprits(said) == []
    assert code in (0, 3), said
    assert [one["rank"] for one in suspects(said)] == [1]


@pytest.mark.parametrize("kind", each("spin", "spin_in_lines"))
def test_an_endless_loop_is_named_with_its_line(kind: str, make_job: Callable[..., RunningJob]) -> None:
    code, said = seen(make_job, kind)
    assert (code, culprits(said)) == (3, [])
    (suspect,) = suspects(said)
    assert (suspect["rank"], suspect["cause"]) == (1, "computes")
    innermost = suspect["hang"]["stack"][0]
    assert innermost["function"] == kind
    assert "if its steps are shorter than that, it is an endless loop" in said["headline"]


@cases
def test_what_looks_like_work_excuses_nobody(kind: str, make_job: Callable[..., RunningJob]) -> None:
    code, said = seen(make_job, kind)
    assert (code, [one["rank"] for one in culprits(said)]) == (1, [1])
