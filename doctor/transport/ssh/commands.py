"""The commands of `Match exec` in ssh_config: run as ssh runs them, and ended when they take too long."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import threading

from doctor.errors import UsageError

SECONDS = 10.0


class Commands:
    """Several threads may ask; `close` ends what still runs."""

    def __init__(self, seconds: float = SECONDS) -> None:
        self._seconds = seconds
        self._lock = threading.Lock()
        self._running: set[subprocess.Popen[bytes]] = set()
        self._closed = False

    def succeeds(self, command: str) -> bool:
        """Raises UsageError for one that does not end."""
        with self._lock:
            if self._closed:
                return False
            process = subprocess.Popen(
                [os.environ.get("SHELL") or "/bin/sh", "-c", command],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                start_new_session=True,
            )
            self._running.add(process)
        try:
            return process.wait(self._seconds) == 0
        except subprocess.TimeoutExpired:
            raise UsageError(
                f"ssh_config: Match exec did not end within {self._seconds:g} s: {command[:80]}"
            ) from None
        finally:
            _kill(process)
            process.wait()
            with self._lock:
                self._running.discard(process)

    def close(self) -> None:
        with self._lock:
            self._closed = True
            for process in self._running:
                _kill(process)


def _kill(process: subprocess.Popen[bytes]) -> None:
    if process.returncode is None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
