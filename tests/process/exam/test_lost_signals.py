"""A signal that arrives while an object is deleted, where Python loses it, ends the run all the same."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.support.paths import ROOT

PROGRAM = """
import os, signal, sys, time
from doctor.exam.signals import signal_of, stop_on_signals

class Deleted:
    def __del__(self):
        os.kill(os.getpid(), int(sys.argv[1]))
        time.sleep(0.01)

stop_on_signals()
try:
    Deleted()
    time.sleep(20)
except KeyboardInterrupt as stop:
    print(signal_of(stop))
"""


@pytest.mark.parametrize("number", [2, 15])
def test_it_comes_again(number: int) -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(number)], capture_output=True, text=True, cwd=ROOT, timeout=30
    )
    assert (done.stdout, done.stderr) == (f"{number}\n", "")
