"""Sizes of the model and of its groups that a launch states, judged as those of --plan are."""

import json
from pathlib import Path
from typing import Any

from doctor.exam.flags import apply_flags
from doctor.exam.request import JobFlags, Request
from doctor.job.wishes import JobWishes
from doctor.judge.examine import build_report
from doctor.judge.playbook import load_remedies
from doctor.judge.reading import read_recording
from doctor.judge.registry import find_checks
from doctor.judge.verdict import Report
from doctor.model import Status
from tests.support.cases import cases
from tests.support.recordings import recording, syllabus

CHECKS = [check for check in find_checks().checks if check.id.startswith(("plan-", "launch-", "master-"))]
LINE = "torchrun --nnodes {} --nproc_per_node 8 --node_rank $1 --master_addr node1 pretrain_gpt.py {}\n"


def examined(folder: Path, text: str, hosts: int = 2, *plan: str) -> Report:
    (folder / "run.sh").write_text(text)
    flags = JobFlags(launch=(str(folder / "run.sh"),), plan=plan)
    made = recording(
        [f"node{n + 1}" for n in range(hosts)], wishes=apply_flags(Request("check", job=flags), JobWishes())
    )
    return build_report(read_recording(made), syllabus(CHECKS), load_remedies())


def faults(of: Report) -> list[tuple[str, str]]:
    return [(each.check, each.summary) for each in of.findings if each.status in (Status.FAIL, Status.WARN)]


@cases
def test_sizes_that_do_not_fit(options: str, summary: str, tmp_path: Path) -> None:
    of = examined(tmp_path, LINE.format(2, options))
    assert faults(of) == [("plan-invalid", summary)]
    (found,) = (each for each in of.findings if each.status is Status.FAIL)
    assert (of.exit_code, found.hosts) == (1, ())


@cases
def test_sizes_that_fit_or_are_not_known(options: str, nodes: str, hosts: int, tmp_path: Path) -> None:
    of = examined(tmp_path, LINE.format(nodes, options), hosts)
    assert (faults(of), of.exit_code) == ([], 0)


def test_sizes_in_a_list_of_words(tmp_path: Path) -> None:
    words = "SIZES=(\n  --num-attention-heads 30\n  --tensor-model-parallel-size 4\n)\n"
    line = LINE.format(2, "${SIZES[@]}").replace("torchrun", 'cmd="torchrun').replace("]}\n", ']}"\n$cmd\n')
    summary = "tp does not divide the attention heads"
    assert faults(examined(tmp_path, words + line)) == [("plan-invalid", summary)]


NAMES = ("train_batch_size", "train_micro_batch_size_per_gpu", "gradient_accumulation_steps")


def of_deepspeed(
    folder: Path, batch: Any, options: str, program: str = "", before: str = "", nodes: str = "2"
) -> Report:
    """The line for 16 ranks, beside a configuration."""
    known = batch if isinstance(batch, dict) else dict(zip(NAMES, batch, strict=False))
    (folder / "ds.json").write_text(json.dumps(known))
    if program:
        (folder / "pretrain_gpt.py").write_text(program)
    return examined(folder, f"{before}\n{LINE.format(nodes, options)}")


@cases
def test_a_batch_of_deepspeed_that_the_ranks_do_not_make(
    given: dict[str, Any], says: str, status: str, tmp_path: Path
) -> None:
    of = of_deepspeed(tmp_path, **given)
    (found,) = (each for each in of.findings if each.status in (Status.FAIL, Status.WARN))
    assert (found.check, found.status, found.hosts) == ("plan-invalid", Status(status), ())
    assert says in found.summary
    assert of.exit_code == (1 if status == "fail" else 0)


@cases
def test_a_batch_of_deepspeed_that_fits_or_is_not_known(given: dict[str, Any], tmp_path: Path) -> None:
    of = of_deepspeed(tmp_path, **given)
    assert (faults(of), of.exit_code) == ([], 0)


def test_the_plan_overrides_the_launch(tmp_path: Path) -> None:
    wrong = LINE.format(2, "--tensor-model-parallel-size 4 --num-attention-heads 30")
    assert faults(examined(tmp_path, wrong, 2, "tp=2,heads=30")) == []
