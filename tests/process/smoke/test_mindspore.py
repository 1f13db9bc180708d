"""The smoke run with an emulated MindSpore, which torch computes: `make test-mindspore` has the real one."""

import subprocess
import sys
from pathlib import Path

from tests.lab.mindspore_python import VERSION, write
from tests.support.cases import cases
from tests.support.paths import ROOT
from tests.support.smoke.local import smoke
from tests.trials.kinds import INSIDE
from tests.trials.outcome import Truth, judged


def test_healthy_ranks_train_and_what_the_backend_lacks_is_said(tmp_path: Path) -> None:
    ran = smoke(tmp_path, "--framework", "mindspore", python=str(write(tmp_path)))
    assert ran.report is not None, ran.errors
    told = ran.report["smoke"]
    assert (ran.code, ran.report["findings"], told["status"]) == (0, [], "pass"), ran.errors
    assert (told["framework"], told["backend"]) == ("mindspore", "mccl")
    assert ran.report["plan"]["backend"]["value"] == "mccl"
    assert told["versions"]["mindspore"] == VERSION
    assert set(told["not_made"]) == {"reduce", "reduce_scatter", "all_to_all"}
    assert f"MindSpore {VERSION} over mccl" in ran.errors


@cases
def test_a_fault_is_found_at_its_rank_and_nobody_else_is_blamed(tmp_path: Path, kind: str, rank: int) -> None:
    ran = smoke(
        tmp_path, "--framework", "mindspore", "--inject", f"{kind}@{rank}", python=str(write(tmp_path))
    )
    assert ran.report is not None, ran.errors
    truth = Truth(INSIDE[kind].checks, frozenset({ran.report["hosts"][0]["name"]}), frozenset({rank}))
    found = judged(kind, 1, "", truth, ran)
    assert found.right, (found, ran.errors)
    assert ran.code == 1


def test_a_rank_computes_on_one_core_and_neighbours_on_others(tmp_path: Path) -> None:
    code = (
        "import os; from doctor.smoke.onhost.mindspore_framework import framework_of\n"
        "before, framework = sorted(os.sched_getaffinity(0)), framework_of('mccl', 0, None)\n"
        "for place in range(3):\n"
        "    os.sched_setaffinity(0, before)\n"
        "    framework.choose_core(place)\n"
        "    assert os.sched_getaffinity(0) == {before[place % len(before)]}, place\n"
    )
    asked = subprocess.run(
        [write(tmp_path), "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=60, check=False
    )
    assert asked.returncode == 0, asked.stderr


def test_nothing_is_trained_with_another_interpreter_than_the_job_s(tmp_path: Path) -> None:
    launch = tmp_path / "launch.sh"
    launch.write_text("msrun --worker_num=4 --local_worker_num=4 --master_addr=127.0.0.1 train.py\n")
    ran = smoke(tmp_path, "--launch", str(launch), python=sys.executable, command="preflight")
    assert ran.report is not None, ran.errors
    assert (ran.code, ran.report["smoke"]["status"]) == (3, "skipped"), ran.errors
    assert not [each for each in ran.report["findings"] if each["status"] == "fail"], ran.errors
    assert "torch-missing: this is not the job's interpreter" in " ".join(ran.errors.split())
