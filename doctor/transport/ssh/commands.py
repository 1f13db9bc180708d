"""The commands of `Match exec` in ssh_config: run as ssh runs them, and ended if they take too long."""

import contextlib
import os
import signal
import subprocess
import threading
from typing import Any

from paramiko.config import SSHConfig

from doctor.transport.errors import cannot, quoted, rounded

SECONDS = 10.0
EARLY_TOKENS = {"hostname": ["%h"], "match-exec": SSHConfig.TOKENS_BY_CONFIG_KEY["match-exec"]}


class Commands:
    """Runs commands for several threads; `close` ends those that still run."""

    def __init__(self, seconds: float = SECONDS) -> None:
        self._seconds = seconds
        self._lock = threading.Lock()
        self._running: set[subprocess.Popen[bytes]] = set()
        self._closed = False

    def succeeds(self, command: str) -> bool:
        """Whether the command exits with 0. Raises CannotReach if it does not end in time."""
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
            words = quoted(command, 80)
            raise cannot("command of ssh_config", seconds=rounded(self._seconds), words=words) from None
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


class PatientConfig(SSHConfig):
    """paramiko's evaluation of ssh_config, with a time limit for commands. `config` replaces other tokens."""

    TOKENS_BY_CONFIG_KEY = EARLY_TOKENS

    def __init__(self) -> None:
        super().__init__()
        self.commands = Commands()

    def _does_match(self, criteria: list[Any], host: str, *state: Any) -> Any:
        """Like paramiko's, but each command has a time limit and runs after the criteria before it."""
        before: list[Any] = []
        for each in criteria:
            if each["type"] != "exec":
                before.append(each)
                continue
            if before and not super()._does_match(before, host, *state):  # type: ignore[misc]
                return []
            command = self._tokenize(state[-1], host, "match-exec", each["param"])  # type: ignore[attr-defined]
            if self.commands.succeeds(command) == each["negate"]:
                return []
        return super()._does_match(before, host, *state) if before else criteria  # type: ignore[misc]
