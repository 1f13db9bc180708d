"""The smoke run with the real MindSpore on the CPU: a healthy run, seven faults, and what it trains with.

`make test-mindspore` names an interpreter that has MindSpore; without one, these tests are left out. Every
run is bounded, and nothing that it started outlives its test.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from shutil import which
from typing import Any

import pytest

from tests.support.paths import ROOT
from tests.support.smoke import local
from tests.trials.kinds import INSIDE
from tests.trials.outcome import Ran, Truth, judged

PYTHON = os.environ.get("MINDSPORE_PYTHON", "")
LIMIT = 240
"""Seconds for one run; on two busy cores it takes half a minute."""
RANKS = 4

pytestmark = pytest.mark.skipif(not PYTHON, reason="no interpreter with MindSpore: make test-mindspore")


def smoke(folder: Path, *words: str, python: str = PYTHON) -> Ran:
    return local.smoke(folder, *words, python=python, ranks=RANKS, limit=LIMIT)


def alive() -> set[str]:
    """Processes of that interpreter: nothing of a run may stay."""
    found = set()
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            if path.read_bytes().startswith(PYTHON.encode() + b"\0"):
                found.add(path.parent.name)
    return found


@pytest.fixture(autouse=True)
def nothing_stays() -> Any:
    before = alive()
    yield
    until = time.monotonic() + 10
    while (left := alive() - before) and time.monotonic() < until:
        time.sleep(0.1)
    assert not left


def test_healthy_ranks_train_and_what_the_backend_lacks_is_said(tmp_path: Path) -> None:
    ran = smoke(tmp_path, "--framework", "mindspore")
    assert ran.report is not None, ran.errors
    told = ran.report["smoke"]
    assert (ran.code, ran.report["findings"], told["status"]) == (0, [], "pass"), ran.errors
    assert (told["framework"], told["backend"]) == ("mindspore", "mccl")
    assert ran.report["plan"]["backend"]["value"] == "mccl"
    assert told["versions"]["mindspore"].split(".")[0] == "2"
    assert told["layout"] == {"dp": 2, "tp": 2, "cells": 1}
    assert set(told["not_made"]) == {"reduce", "reduce_scatter", "all_to_all"}
    assert "MindSpore" in ran.errors


@pytest.mark.parametrize(
    ("kind", "rank"),
    [
        ("kill", 3),
        ("stop", 1),
        ("stuck", 2),
        ("skip", 3),
        ("mask", 2),
        ("param-bit", 1),
        ("wrong-result", 0),
    ],
)
def test_a_fault_is_found_at_its_rank_and_nobody_else_is_blamed(tmp_path: Path, kind: str, rank: int) -> None:
    ran = smoke(tmp_path, "--framework", "mindspore", "--steps", "12", "--inject", f"{kind}@{rank}")
    assert ran.report is not None, ran.errors
    host = ran.report["hosts"][0]["name"]
    # Of two replicas that differ, either may be right.
    guilty = {rank, (rank + 2) % RANKS} if kind == "param-bit" else {rank}
    truth = Truth(INSIDE[kind].checks, frozenset({host}), frozenset(guilty))
    found = judged(kind, 1, "", truth, ran)
    assert found.right, (found, ran.errors)
    assert ran.code == 1


def test_an_interpreter_without_the_job_s_framework_trains_nothing(tmp_path: Path) -> None:
    launch = tmp_path / "launch.sh"
    launch.write_text("msrun --worker_num=4 --local_worker_num=4 --master_addr=127.0.0.1 train.py\n")
    ran = smoke(tmp_path, "--launch", str(launch), python=sys.executable)
    assert ran.report is not None, ran.errors
    assert ran.code == 3, ran.errors
    assert "this is not the job's interpreter" in " ".join(ran.errors.split())
    assert ran.report["smoke"]["status"] == "skipped"


def test_a_launch_by_msrun_is_trained_with_mindspore(tmp_path: Path) -> None:
    launch = tmp_path / "launch.sh"
    launch.write_text("msrun --worker_num=4 --local_worker_num=4 --master_addr=127.0.0.1 train.py\n")
    ran = smoke(tmp_path, "--launch", str(launch), "--steps", "4")
    assert ran.report is not None, ran.errors
    assert ran.report["plan"]["framework"]["value"] == "mindspore"
    assert ran.report["smoke"]["framework"] == "mindspore"
    assert "torch-missing" not in {each["check"] for each in ran.report["findings"]}, ran.errors


PREFLIGHT = """
import sys
from doctor.__main__ import main

sys.argv = ["doctor", *sys.argv[1:]]
sys.exit(main())
"""


MSRUN = [
    str(Path(PYTHON).with_name("msrun")),
    *("--worker_num=2", "--local_worker_num=2", "--join=True", "--log_dir=logs"),
    *("--master_addr=127.0.0.1", "--master_port=18118"),
]
MPIRUN = ["mpirun", "--allow-run-as-root", "--oversubscribe", "-n", "2", sys.executable]


@pytest.mark.parametrize("launcher", [MSRUN, MPIRUN], ids=["msrun", "mpirun"])
def test_inside_a_job_the_ranks_examine_their_own_job(launcher: list[str], tmp_path: Path) -> None:
    """msrun starts a scheduler that stays if a rank hangs: its whole process group ends here."""
    if launcher is MPIRUN and which("mpirun") is None:
        pytest.skip("no mpirun here")
    (tmp_path / "preflight.py").write_text(PREFLIGHT)
    file = tmp_path / "report.json"
    words = ["smoke", "--in-job", "--steps", "6", "--python", PYTHON, "--json", str(file)]
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"  # msrun starts `python`
    with subprocess.Popen(
        [*launcher, str(tmp_path / "preflight.py"), *words],
        cwd=tmp_path,
        env={**os.environ, "PATH": path, "PYTHONPATH": str(ROOT)},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    ) as run:
        try:
            said, _ = run.communicate(timeout=LIMIT)
        finally:
            local.end(run)
    assert run.returncode == 0, said
    report = json.loads(file.read_bytes())
    source = "found on the hosts" if launcher is MPIRUN else report["plan"]["framework"]["source"]
    assert report["plan"]["framework"] == {"value": "mindspore", "source": source}
    assert (report["smoke"]["status"], report["smoke"]["framework"]) == ("pass", "mindspore")
