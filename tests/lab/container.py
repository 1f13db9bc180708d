"""One container of a lab host, seen from outside: its processes, files and listeners."""

import contextlib
import os
import signal
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil

from .host import Host
from .machine import listening
from .processes import command, namespace, numbers, processes
from .snapshot import Running, Snapshot

FOLDERS = ("", "dev", "dev/shm")
"""The file systems of the container itself; all other mounts belong to the host."""
_CGROUPS = Path("/sys/fs/cgroup")


class Memory:
    """A cgroup with a memory limit, enforced by the machine's kernel."""

    def __init__(self, limit: int, name: str) -> None:
        self.unified = not (_CGROUPS / "memory").is_dir()
        top = _CGROUPS if self.unified else _CGROUPS / "memory"
        self.folder = top / f"cluster-doctor-lab-{os.getpid()}-{name}"
        self.folder.mkdir()
        knob = "memory.max" if self.unified else "memory.limit_in_bytes"
        (self.folder / knob).write_text(str(limit))

    @staticmethod
    def possible() -> bool:
        """Whether this machine allows memory limits."""
        try:
            trial = Memory(1 << 30, "trial")
        except OSError:
            return False
        trial.remove()
        return True

    def remove(self) -> None:
        """Remove the cgroup as soon as its last process is reaped."""
        for _ in range(200):
            with contextlib.suppress(OSError):
                self.folder.rmdir()
                return
            time.sleep(0.02)
        self.folder.rmdir()


@dataclass
class Container:
    """`pid` is the machine's process id of its PID 1, `pid_on_host` that of the host."""

    host: Host
    name: str
    pid_on_host: int
    address: str
    memory: Memory | None = None
    registered: dict[str, Any] = field(default_factory=dict)
    pid: int = 0

    def __post_init__(self) -> None:
        self.pid = _number(self.host.pid, self.pid_on_host)

    def ask(self, text: str) -> str:
        """The output of a shell command inside it."""
        own = ["nsenter", "-t", str(self.pid_on_host), "-m", "-u", "-i", "-n", "-p", "--", "sh", "-c", text]
        return self.host.ask('exec "$@"', *own).stdout.strip()

    def snapshot(self) -> Snapshot:
        """Its processes, files and listeners. Zombies do not count as running."""
        return Snapshot(
            frozenset(self._processes()), frozenset(self._files()), frozenset(listening(self.pid))
        )

    def leftovers(self, before: Snapshot) -> Snapshot:
        return self.snapshot() - before

    @property
    def zombies(self) -> int:
        """Ended processes that the container's PID 1 did not reap."""
        return int(self.ask("cat /proc/[0-9]*/stat 2>/dev/null | grep -c ') Z '") or 0)

    def remove(self) -> None:
        if self.host.running:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGKILL)
            self.host.await_that(lambda: not psutil.pid_exists(self.pid), f"end of {self.name}")
        if self.memory:
            self.memory.remove()

    def _processes(self) -> Iterator[Running]:
        for process in processes(self.pid):
            with contextlib.suppress(psutil.NoSuchProcess):
                if process.pid != self.pid and process.status() != psutil.STATUS_ZOMBIE:
                    yield Running(process.pid, command(process))

    def _files(self) -> Iterator[str]:
        """File systems mounted below are left out: they belong to the host."""
        for folder in FOLDERS:
            top = f"/proc/{self.pid}/root/{folder}"
            device = os.stat(top).st_dev
            for path, folders, files in os.walk(top):
                folders[:] = [each for each in folders if os.lstat(f"{path}/{each}").st_dev == device]
                for each in (*folders, *files):
                    yield f"/{folder}{path.removeprefix(top)}/{each}".replace("//", "/")


def _number(host: int, inside: int) -> int:
    """The machine's id of the process that has the id `inside` on a host."""
    for pid in psutil.pids():
        with contextlib.suppress(OSError, psutil.NoSuchProcess):
            # The last but one is its id on the host; the last is the id in its own namespace, 1.
            if numbers(pid)[-2:] == [inside, 1] and namespace(psutil.Process(pid).ppid()) == namespace(host):
                return pid
    raise LookupError(f"no process has the number {inside} on that host")
