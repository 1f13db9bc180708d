"""What is left of a command that doctor ended."""

from __future__ import annotations

import subprocess
import time

import psutil

from doctor.around.ended import below, end
from tests.support.around import await_true, started

LEAVES = "trap '' TERM; sleep 600 & sleep 601 & echo ready; wait"


def test_processes_without_a_parent_are_ended_and_those_that_refuse_are_killed() -> None:
    with started(["sh", "-c", LEAVES], stderr=subprocess.DEVNULL) as shell:
        assert shell.stdout is not None
        shell.stdout.readline()
        found = below(shell.pid)
        assert len(found) == 3
        shell.kill()
        shell.wait()
        began = time.monotonic()
        end(found, began + 0.5)
        await_true(lambda: not [each for each in found if _runs(each)], "the end of all")
        assert time.monotonic() - began < 30


def _runs(process: psutil.Process) -> bool:
    return process.is_running() and process.status() != psutil.STATUS_ZOMBIE


def test_a_command_that_has_ended_has_nothing_below_it() -> None:
    assert below(1 << 22) == []
