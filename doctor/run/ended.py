"""The processes of a command that doctor ends: those that a script started with & or set free outlive it."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import psutil

TICK = 0.1
KILLS = 20
"""How often KILL is sent, a tick apart: a process may start others until it is gone."""


def below(pid: int) -> list[psutil.Process]:
    """A process and all below it."""
    import psutil

    try:
        return _with_children([psutil.Process(pid)])
    except psutil.Error:
        return []


class Ending:
    """Ends the processes of a command: those that are below it now, and those that come below `adopter`."""

    def __init__(self, command: int, adopter: int) -> None:
        self._known = below(command)
        self._adopter = adopter
        self._asked: set[psutil.Process] = set()

    def ask(self) -> bool:
        """Ask those that were not asked yet; False if none runs any more. The command itself was asked."""
        left = self._left()
        _send((each for each in left if each not in self._asked), signal.SIGTERM)
        self._asked.update(left)
        return bool(left)

    def kill(self) -> None:
        _send(self._left(), signal.SIGKILL)

    def until(self, over: float) -> Iterator[str]:
        """Ask all to end; from `over` on, of time.monotonic(), kill them. Says which still run."""
        while self.ask() and time.monotonic() < over:
            time.sleep(TICK)
        for _ in range(KILLS):
            self.kill()
            if not self._left():
                return
            time.sleep(TICK)
        yield from map(_said, self._left())

    def _left(self) -> list[psutil.Process]:
        of_adopter = (each for each in below(self._adopter) if each.pid != self._adopter)
        found = dict.fromkeys((*_with_children(filter(_runs, self._known)), *of_adopter))
        return [each for each in found if _runs(each)]


def _said(process: psutil.Process) -> str:
    import psutil

    sudo = ""
    with contextlib.suppress(psutil.Error):
        sudo = "sudo " if os.getuid() and process.uids().real != os.getuid() else ""
    return f"process {process.pid} of the command still runs here; to end it: {sudo}kill -KILL {process.pid}"


def _send(processes: Iterable[psutil.Process], number: int) -> None:
    import psutil

    for each in processes:
        with contextlib.suppress(psutil.Error):  # it has ended, or is another user's
            each.send_signal(number)


def _runs(process: psutil.Process) -> bool:
    import psutil

    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.Error:
        return False


def _with_children(processes: Iterable[psutil.Process]) -> list[psutil.Process]:
    import psutil

    found: dict[psutil.Process, None] = {}
    for each in processes:
        found[each] = None
        with contextlib.suppress(psutil.Error):
            found.update(dict.fromkeys(each.children(recursive=True)))
    return list(found)
