"""A signal that comes to `doctor run` while it asks the hosts why the command ended."""

import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from doctor.run.apart import apart
from tests.support.cases import from_cases
from tests.support.command import SECONDS, await_true, started
from tests.support.commands import DOCTOR, environment

FAILS = from_cases(__file__, "FAILS", str)
AT_ONCE = from_cases(__file__, "AT_ONCE", str)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_what_was_printed_is_explained_and_nothing_stays(number: signal.Signals, tmp_path: Path) -> None:
    """The host accepts the connection and says nothing."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        silent.settimeout(SECONDS)
        words = [*DOCTOR, "run", "127.0.0.1", "--no-preflight", "--port", str(silent.getsockname()[1])]
        words += ["--connect-timeout", str(SECONDS), "--", "bash", "-c", FAILS]
        env = {**os.environ, "TMPDIR": str(tmp_path)}
        with started(words, env=env, cwd=tmp_path) as process:
            held, _ = silent.accept()
            await_true(lambda: list(tmp_path.glob("doctor-logs-*")), "the folder for the logs")
            os.kill(process.pid, number)
            _, err = process.communicate(timeout=SECONDS)
            held.close()
    said = err.decode()
    assert process.returncode == 3, said
    assert f"{number.name} came while the end was being explained" in said
    assert "rank 0" in said.partition("came while")[2], said
    assert list(tmp_path.glob("doctor-logs-*")) == []
    (why,) = tmp_path.glob("doctor-runs/*/why.txt")
    assert "rank 0" in why.read_text()


def test_a_signal_just_after_the_fork_ends_the_work() -> None:
    """The work ends doctor before doctor has returned from the fork."""
    ran = subprocess.run(
        [sys.executable, "-c", AT_ONCE], capture_output=True, text=True, env=environment(), timeout=SECONDS
    )
    assert (ran.stdout, ran.returncode) == ("SIGINT ended a part of doctor.\n", 0), ran.stderr


def test_no_signal_is_held_if_the_fork_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    def fork() -> int:
        raise BlockingIOError("no more processes")

    monkeypatch.setattr(os, "fork", fork)
    with pytest.raises(BlockingIOError):
        apart(lambda: None)
    assert signal.SIGINT not in signal.pthread_sigmask(signal.SIG_BLOCK, ())
