"""Ranks in states S and D whose file system does not answer: nothing waits for the file system, and it is
named.
"""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.support.commands import doctor
from tests.support.hang import dead_files
from tests.support.hang.named import culprits
from tests.support.hang.ranks import RunningJob

pytestmark = pytest.mark.slow


@pytest.fixture
def make_job(tmp_path: Path) -> Iterator[Callable[..., RunningJob]]:
    """Its ranks see the dead file system as FOLDER/dead; no other process does."""
    if os.geteuid() != 0 or not os.access("/dev/fuse", os.R_OK | os.W_OK):
        pytest.skip("a file system of its own needs root and /dev/fuse")
    (tmp_path / "dead").mkdir()
    server = subprocess.Popen(
        [sys.executable, dead_files.__file__, str(tmp_path / "dead")],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert server.stdout
    assert server.stderr
    if server.stdout.readline() != "mounted\n":
        said = server.communicate()[1]
        pytest.skip(f"a file system cannot be mounted here: {said}")
    job = RunningJob(tmp_path, 3, become=("nsenter", f"--mount=/proc/{server.pid}/ns/mnt", "--"))

    def make(**more: str) -> RunningJob:
        job.start(**more)
        return job

    yield make
    server.kill()  # it ends every read of it
    server.communicate()
    job.close()


def state(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


@pytest.mark.parametrize(
    ("fault", "shown"), [("storage", "S"), pytest.param("storage-behind", "D", marks=pytest.mark.long)]
)
def test_the_rank_is_named_and_nothing_waits(
    fault: str, shown: str, make_job: Callable[..., RunningJob]
) -> None:
    job = make_job(FAULT=fault)
    job.hangs()
    end = time.monotonic() + 20
    while state(job.pids[1]) != shown:
        assert time.monotonic() < end, state(job.pids[1])
        time.sleep(0.1)
    words = ["--local", "--master-port", str(job.port), "--for", "1", "--limit", "1", "--json", "-"]
    done = doctor("hang", *words)
    said = json.loads(done.stdout)
    assert (done.returncode, said["hang"]["state"]) == (1, "hang"), said
    (culprit,) = culprits(said)
    assert (culprit["rank"], culprit["cause"]) == (1, "waits for storage")
    assert "file system that does not answer" in culprit["summary"]
    if shown == "S":  # in state D, it has not been opened yet
        assert f"{job.folder}/dead/shard" in culprit["summary"]
    assert culprit["hang"]["stack"][0]["source"] == 'return (FOLDER / "dead" / "shard").read_bytes()'
    assert state(job.pids[1]) == shown
