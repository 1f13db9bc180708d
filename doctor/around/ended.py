"""The processes of a command that doctor ends: those that a script started with & outlive it."""

from __future__ import annotations

import contextlib
import signal
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import psutil

TICK = 0.1


def below(pid: int) -> list[psutil.Process]:
    """A process and all below it."""
    import psutil

    try:
        return _with_children([psutil.Process(pid)])
    except psutil.Error:
        return []


def end(processes: Sequence[psutil.Process], until: float) -> None:
    """Ask those that still run to end; from `until` on, of time.monotonic(), kill them."""
    _send(processes, signal.SIGTERM)
    while any(map(_runs, processes)) and time.monotonic() < until:
        time.sleep(TICK)
    _send(processes, signal.SIGKILL)


def kill(processes: Sequence[psutil.Process]) -> None:
    _send(processes, signal.SIGKILL)


def _send(processes: Sequence[psutil.Process], number: int) -> None:
    import psutil

    for each in _with_children([one for one in processes if _runs(one)]):
        with contextlib.suppress(psutil.Error):  # it has ended, or is another user's
            each.send_signal(number)


def _runs(process: psutil.Process) -> bool:
    import psutil

    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.Error:
        return False


def _with_children(processes: Sequence[psutil.Process]) -> list[psutil.Process]:
    import psutil

    found: dict[psutil.Process, None] = {}
    for each in processes:
        found[each] = None
        with contextlib.suppress(psutil.Error):
            found.update(dict.fromkeys(each.children(recursive=True)))
    return list(found)
