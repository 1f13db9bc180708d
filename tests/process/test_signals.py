"""Tests also pass if signals are ignored, as if started by `nohup make test &`."""

import subprocess
import sys

from tests.support.paths import ROOT

SIGNALS = "tests/process/cli/test_commands.py::test_a_signal_ends_the_run_with_what_is_known"


def test_processes_that_tests_start_ignore_no_signal() -> None:
    code = "import signal; print([n for n in (1, 2, 3) if signal.getsignal(n) is signal.SIG_IGN])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_tests_of_signals_hold_where_signals_are_ignored() -> None:
    pytest = [sys.executable, "-m", "pytest", "-n0", "-q", "-p", "no:cacheprovider", SIGNALS]
    done = subprocess.run(
        ["sh", "-c", 'trap "" HUP INT QUIT; exec "$@"', "sh", *pytest],
        capture_output=True,
        text=True,
        cwd=ROOT,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "3 passed" in done.stdout
