"""Who traces a process, and whether a handler of a timer may run in it, as /proc shows both."""

import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from doctor.live.onhost import proc
from tests.support.command import await_true

SLEEPS = "import signal, sys, time; {0}print('ready', flush=True); time.sleep(100)"
HOLDS = """
import ctypes, os, sys, time
libc, pid = ctypes.CDLL(None), int(sys.argv[1])
assert libc.ptrace(16, pid, None, None) == 0
os.waitpid(pid, 0x40000000)
print("ready", flush=True)
sys.stdin.read()
libc.ptrace(17, pid, None, None)
"""


@contextmanager
def running(program: str, *args: str) -> "Iterator[subprocess.Popen[str]]":
    command = [sys.executable, "-c", program, *args]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        assert process.stdout.readline() == "ready\n"
        yield process
        process.kill()


def seen(pid: int) -> "dict[str, object]":
    row = proc.row((pid, False))
    assert row
    return proc.seen((pid, row["start"], False, True))


def test_a_process_that_is_held_names_its_tracer_and_one_that_runs_has_none() -> None:
    with running(SLEEPS.format("")) as held:
        await_true(lambda: seen(held.pid)["state"] == "S", "a process that sleeps")
        assert seen(held.pid)["tracer"] == ""
        with running(HOLDS, str(held.pid)) as tracer:
            look = seen(held.pid)
            assert look["state"] == "t"
            assert str(look["tracer"]).startswith(f"process {tracer.pid} (")


@pytest.mark.parametrize(
    ("number", "timed"),
    [(None, False), (signal.SIGTERM, False), (signal.SIGALRM, True), (signal.SIGPROF, True)],
)
def test_a_handler_of_a_timer_is_seen_and_one_of_another_signal_is_not(
    number: "int | None", timed: bool
) -> None:
    handler = f"signal.signal({int(number)}, lambda *_: None); " if number else ""
    with running(SLEEPS.format(handler)) as process:
        assert seen(process.pid)["timed"] is timed
