"""What is left of a command that doctor ended."""

import os
import subprocess
import time
import uuid
from pathlib import Path

import psutil

from doctor.run.ended import Ending, below
from tests.support.command import await_true, ran, ready, relays, started
from tests.support.commands import DOCTOR

LEAVES = "trap '' TERM; sleep 600 & sleep 601 & echo ready; wait"
SETS_FREE = "trap 'setsid sleep 600 & exit 0' TERM; while :; do echo step $((n+=1)) loss nan; sleep 1; done"
"""A script that is told to end starts something in a session of its own, and ends."""


def test_processes_without_a_parent_are_ended_and_those_that_refuse_are_killed() -> None:
    with started(["sh", "-c", LEAVES], stderr=subprocess.DEVNULL) as shell:
        ready(shell)
        found = below(shell.pid)
        assert len(found) == 3
        ending = Ending(shell.pid, 1 << 22)
        shell.kill()
        shell.wait()
        began = time.monotonic()
        assert [*ending.until(began + 0.5)] == []
        await_true(lambda: not [each for each in found if _runs(each)], "the end of all")
        assert time.monotonic() - began < 30


def _runs(process: psutil.Process) -> bool:
    return process.is_running() and process.status() != psutil.STATUS_ZOMBIE


def test_a_command_that_has_ended_has_nothing_below_it() -> None:
    assert below(1 << 22) == []


def test_what_a_command_sets_free_while_it_is_ended_is_ended_too(tmp_path: Path) -> None:
    mark = f"mark-{uuid.uuid4()}"
    words = [*DOCTOR, "run", "--local", "--no-preflight", "--on-loss", "end", "--", "sh", "-c", SETS_FREE]
    done = ran(words, env={**os.environ, "MARK": mark}, cwd=tmp_path, seconds=120)
    assert done.code == 75, done.err.decode()
    assert not relays(mark), done.err.decode()
    assert b"still runs" not in done.err
