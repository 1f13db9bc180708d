"""What a smoke run is doing, seen from outside: its progress pages, its processes.

Nothing here needs the run's help or can disturb it.
"""

import contextlib
import itertools
import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from doctor.smoke.onhost import page
from tests.lab import Host, Lab, LabError
from tests.lab.processes import command, numbers, processes
from tests.lab.warm import Started


@dataclass(frozen=True, slots=True)
class Rank:
    """A rank as its progress page shows it. `pid` is its number on the machine, `local` on its host."""

    host: str
    local: int
    pid: int
    phase: str
    step: int
    position: int
    inside: bool
    moved: float

    def has_come_to(self, phase: str, step: int = 0) -> bool:
        """Whether the rank has reached a step of a phase, or passed it."""
        return (page.PHASES.index(self.phase), self.step) >= (page.PHASES.index(phase), step)

    def send(self, number: int) -> None:
        os.kill(self.pid, number)


@dataclass(slots=True)
class Watch:
    """The progress pages of one run, read without its agents.

    A page is memory that the agent shares with its ranks; the memory has no name, but the kernel shows
    it among the agent's open files.
    """

    lab: Lab
    _memory: dict[str, int] = field(default_factory=dict)
    _pids: dict[tuple[str, int], int] = field(default_factory=dict)

    def ranks(self, name: str) -> list[Rank]:
        """The ranks of one host that have a page yet, in order."""
        if name not in self._memory:
            self._find(name)
        if name not in self._memory:
            return []
        held = os.pread(self._memory[name], 1 << 20, 0)
        return list(self._read(name, held))

    def _read(self, name: str, held: bytes) -> Iterator[Rank]:
        for local in range(len(held) // page.SIZE):
            values = dict(zip(page.RankPage.FIELDS, page.read(held, local), strict=True))  # type: ignore[arg-type]
            if values["version"] and (pid := self._outer(name, values["pid"])):
                yield Rank(
                    name,
                    local,
                    pid,
                    page.PHASES[values["phase"]],
                    values["step"],
                    values["position"],
                    bool(values["inside"]),
                    values["moved"],
                )

    def all(self) -> list[Rank]:
        return [rank for name in self.lab.names if self.lab[name].running for rank in self.ranks(name)]

    def await_that(
        self,
        holds: Callable[[list[Rank]], bool],
        what: str,
        run: Started,
        timeout: float = 60.0,
    ) -> list[Rank]:
        """Wait for a condition; returns the ranks at the first moment at which it held. `run` is ended if it
        never holds.
        """
        deadline = time.monotonic() + timeout
        while not holds(ranks := self.all()):
            if time.monotonic() > deadline or run.poll() is not None:
                run.kill()
                raise LabError(f"no {what}: {ranks}\n{''.join(run.communicate())}")
            time.sleep(0.005)
        return ranks

    def await_phase(self, phase: str, step: int, run: Started) -> list[Rank]:
        """Wait until the first rank has reached the phase."""
        return self.await_that(
            lambda seen: any(rank.has_come_to(phase, step) for rank in seen), f"{phase} phase", run
        )

    def close(self) -> None:
        for memory in self._memory.values():
            os.close(memory)
        self._memory.clear()
        self._pids.clear()

    def _find(self, name: str) -> None:
        for process in processes(self.lab[name].pid):
            with contextlib.suppress(OSError):
                for link in Path(f"/proc/{process.pid}/fd").iterdir():
                    if not os.readlink(link).startswith(("/memfd:", "/tmp/")):
                        continue
                    memory = os.open(link, os.O_RDONLY)
                    if self._is_pages(name, memory):
                        self._memory[name] = memory
                        return
                    os.close(memory)

    def _is_pages(self, name: str, memory: int) -> bool:
        size = os.fstat(memory).st_size
        if not size or size % page.SIZE:
            return False
        values = page.read(os.pread(memory, page.SIZE, 0), 0)  # type: ignore[arg-type]
        return values[0] > 0 and values[2] < len(page.PHASES) and bool(self._outer(name, values[1]))

    def _outer(self, name: str, inside: int) -> int | None:
        """The machine's id of a process that has the id `inside` on its host."""
        if (name, inside) not in self._pids:
            for process in processes(self.lab[name].pid):
                with contextlib.suppress(OSError):
                    self._pids[name, numbers(process.pid)[-1]] = process.pid
        return self._pids.get((name, inside))


@contextlib.contextmanager
def watching(lab: Lab) -> Iterator[Watch]:
    watch = Watch(lab)
    try:
        yield watch
    finally:
        watch.close()


def agent(host: Host) -> int | None:
    """The supervisor of the ranks of a host: the outermost Python process of its logins."""
    for process in processes(host.pid):
        with contextlib.suppress(psutil.NoSuchProcess):
            above = itertools.takewhile(lambda each: each.pid != host.pid, process.parents())
            line = [(each.pid, each.name()) for each in (process, *above)]
            pythons = [pid for pid, name in line if name.startswith("python")]
            if pythons and any(name.startswith("sshd") for _, name in line):
                return pythons[-1]
    return None


def sessions(host: Host) -> list[int]:
    """The processes of sshd that serve a login."""
    lines = {process.pid: command(process) for process in processes(host.pid)}
    return [pid for pid, line in lines.items() if line.startswith("sshd: ") and "[listener]" not in line]
