"""Other processes beside a job: a second job of the same user, and a prompt and a notebook that kept a rank's
variables.
"""

import json
import os
import pty
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.support.hang.named import culprits
from tests.support.hang.ranks import RunningJob
from tests.support.paths import ROOT

OWNER = 61_300 + int("0" + os.environ.get("PYTEST_XDIST_WORKER", "").removeprefix("gw"))
"""A user without other jobs on this machine: tests of this file may run at the same time."""
BECOME = ("setpriv", f"--reuid={OWNER}", f"--regid={OWNER}", "--clear-groups")

pytestmark = [pytest.mark.slow, pytest.mark.skipif(os.geteuid() != 0, reason="only root has other users")]


@pytest.fixture
def make_job() -> Iterator[Callable[..., RunningJob]]:
    made: list[RunningJob] = []

    def make(**more: str) -> RunningJob:
        folder = Path(tempfile.mkdtemp())
        folder.chmod(0o777)
        made.append(RunningJob(folder, 2, become=BECOME))
        made[-1].start(**more)
        (folder / "fifo").chmod(0o666)
        return made[-1]

    yield make
    for job in made:
        job.close()
        subprocess.run(["rm", "-r", str(job.folder)], check=True)


def judged(*words: str) -> tuple[int, dict[str, Any]]:
    argv = [sys.executable, "-m", "doctor", "hang", "--local", "--rank-user", f"uid {OWNER}"]
    done = subprocess.run(
        [*argv, "--for", "1", "--limit", "1", "--json", "-", *words],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=100,
    )
    assert done.stdout, done.stderr
    said: dict[str, Any] = json.loads(done.stdout)
    return done.returncode, said


def test_of_two_jobs_the_one_that_hangs_is_named(make_job: Callable[..., RunningJob]) -> None:
    hung, moving = make_job(FAULT="sleep"), make_job(FAULT="")
    hung.hangs()
    moving.runs()
    code, said = judged()
    assert (code, said["hang"]["state"]) == (1, "several jobs")
    verdicts = {job["master"].rpartition(":")[2]: job["state"] for job in said["hang"]["jobs"]}
    assert verdicts == {str(hung.port): "hang", str(moving.port): "moves"}
    assert [(each["rank"], each["pid"]) for each in culprits(said)] == [(1, hung.pids[1])]
    code, said = judged("--pid", str(moving.pids[0]))
    assert (code, said["hang"]["state"]) == (0, "moves")


@pytest.mark.long
def test_a_worker_of_a_data_loader_chooses_its_job(make_job: Callable[..., RunningJob]) -> None:
    hung, moving = make_job(FAULT="loader"), make_job(FAULT="")
    hung.hangs()
    moving.runs()
    (worker,) = psutil.Process(hung.pids[1]).children()
    code, said = judged("--pid", str(worker.pid))
    assert (code, said["hang"]["state"]) == (1, "hang"), said
    assert [each["rank"] for each in culprits(said)] == [1]


def test_a_prompt_and_a_notebook_that_kept_a_rank_are_none(make_job: Callable[..., RunningJob]) -> None:
    job = make_job(FAULT="")
    job.runs()
    env = {"RANK": "0", "WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(job.port)}
    kernel = job.folder / "ipykernel_launcher.py"
    kernel.write_text("import time; time.sleep(1000)")
    ours, theirs = pty.openpty()
    beside = [
        subprocess.Popen(
            [*BECOME, sys.executable, "-q"], env=env, stdin=theirs, stdout=theirs, stderr=theirs
        ),
        subprocess.Popen([*BECOME, sys.executable, str(kernel)], env=env | {"MASTER_PORT": "1"}),
        subprocess.Popen([*BECOME, sys.executable, "-c", "import time; time.sleep(1000)"], env=env),
    ]
    try:
        code, said = judged("--for", "4", "--limit", "4")
        assert (code, said["hang"]["state"]) == (0, "moves"), said
        assert (said["hang"]["job"]["found"], said["hang"]["job"]["pids"]) == (2, job.pids)
        assert len(said["hang"]["jobs"]) == 1
    finally:
        for process in beside:
            process.kill()
            process.wait()
        for end in (ours, theirs):
            os.close(end)
