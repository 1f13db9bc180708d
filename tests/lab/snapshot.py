"""The files and processes of a host, seen from outside: the proof that a run left nothing behind."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from dataclasses import dataclass

import psutil

from .machine import Machine, listening
from .processes import command, numbers, processes

# The file systems of a host besides its root disk.
WATCHED = ("dev", "dev/shm", "home", "root", "run", "tmp", "var/tmp")
# The descriptor of PID 1 that leads to the upper layer of the root disk (see boot.sh).
ROOT_DISK = 9


@dataclass(frozen=True, slots=True)
class Running:
    """A process by its id on the host; its command line as text."""

    pid: int
    command: str


@dataclass(frozen=True, slots=True)
class Snapshot:
    """What exists besides the host's own init and the listening sshd.

    `files` are all files on file systems in memory, and all that were written on the root disk.
    """

    processes: frozenset[Running]
    files: frozenset[str]
    ports: frozenset[int]

    def __sub__(self, before: Snapshot) -> Snapshot:
        return Snapshot(
            self.processes - before.processes, self.files - before.files, self.ports - before.ports
        )

    def __bool__(self) -> bool:
        return bool(self.processes or self.files or self.ports)


def snapshot(host: Machine) -> Snapshot:
    """Read the state of a running host without starting anything on it."""
    return Snapshot(
        frozenset(_processes(host.pid)),
        frozenset(_files(host.pid)),
        frozenset(listening(host.pid)),
    )


def _processes(init: int) -> Iterator[Running]:
    for process in processes(init):
        # A process may end while it is read.
        with contextlib.suppress(OSError, psutil.NoSuchProcess):
            line = command(process)
            if not _infrastructure(init, process.pid, process.ppid(), line):
                yield Running(numbers(process.pid)[-1], line or f"[{process.name()}]")


def _infrastructure(init: int, pid: int, parent: int, command: str) -> bool:
    """PID 1, its lifeline, and the sshd that listens; not the sessions of that sshd."""
    if pid == init:
        return True
    return parent == init and (command == "cat" or (command.startswith("sshd: ") and "[listener]" in command))


def _files(init: int) -> Iterator[str]:
    yield from _below(f"/proc/{init}/fd/{ROOT_DISK}", "")
    for watched in WATCHED:
        yield from _below(f"/proc/{init}/root/{watched}", f"/{watched}")


def _below(top: str, name: str) -> Iterator[str]:
    """The files and folders under `top`, as paths under `name`; without file systems mounted there."""
    device = os.stat(top).st_dev
    for folder, folders, files in os.walk(top):
        folders[:] = [each for each in folders if os.lstat(f"{folder}/{each}").st_dev == device]
        for each in (*folders, *files):
            yield f"{name}{folder.removeprefix(top)}/{each}"
