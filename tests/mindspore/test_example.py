"""examples/mindspore with the real MindSpore: the hook compares what the data sets of four ranks draw."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.paths import ROOT
from tests.support.smoke import local

PYTHON = os.environ.get("MINDSPORE_PYTHON", "")
FOLDER = ROOT / "examples/mindspore"
LIMIT = 240

pytestmark = pytest.mark.skipif(not PYTHON, reason="no interpreter with MindSpore: make test-mindspore")


def run(folder: Path, *argv: str) -> tuple[int, str]:
    """The exit code, and what rank 0 said."""
    here = folder / "mindspore"
    here.mkdir()
    (folder / "tmp").mkdir()
    for name in ("job.sh", "train.py"):
        (here / name).write_bytes((FOLDER / name).read_bytes())
        (here / name).chmod(0o755)
    mine = [str(Path(python).parent) for python in (PYTHON, sys.executable)]
    with (folder / "said").open("w") as output:
        process = subprocess.Popen(
            argv,
            cwd=here,
            env={
                **os.environ,
                "PATH": os.pathsep.join([*mine, os.environ["PATH"]]),
                "PYTHONPATH": str(ROOT),
                "TMPDIR": str(folder / "tmp"),
                "DOCTOR_HOOK_DIR": str(folder / "hook"),
                "MS_DEV_LAUNCH_BLOCKING": "1",
                "OMP_NUM_THREADS": "1",
            },
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        with process:
            try:
                code = process.wait(LIMIT)
            finally:
                local.end(process)
    log = here / "logs/worker_0.log"
    return code, log.read_text() if log.exists() else (folder / "said").read_text()[-3000:]


def test_the_wrong_seed_is_found_in_a_job_that_the_preflight_let_start(tmp_path: Path) -> None:
    code, said = run(tmp_path, "./job.sh", "--wrong-seed", "--steps", "4")
    assert code == 0, said
    assert "not the same mask inside a model-parallel group: ranks 0-1; ranks 2-3" in said
    assert "tokens inside" not in said
    assert not list((tmp_path / "tmp").glob("tmp.*"))


def test_with_the_right_seed_the_hook_is_silent(tmp_path: Path) -> None:
    workers = ["--worker_num=4", "--local_worker_num=4", "--master_addr=127.0.0.1", "--master_port=18119"]
    where = ["--join=True", "--log_dir=logs"]
    code, said = run(tmp_path, "msrun", *workers, *where, "train.py", "--steps", "10")
    assert code == 0, said
    assert "step 10  loss" in said
    assert "doctor:" not in said
