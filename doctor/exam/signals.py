"""SIGTERM and SIGHUP end a run as Ctrl-C does: it reports what is known and leaves nothing behind."""

from __future__ import annotations

import os
import signal
import sys
import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sys import UnraisableHookArgs

SOON = 0.05


class StopSignal(KeyboardInterrupt):
    """A signal asked the run to end."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self.number = number


def stop_on_signals() -> None:
    sys.unraisablehook = _once_more
    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is not signal.SIG_IGN:  # nohup
            signal.signal(number, _stop)


def signal_of(stop: KeyboardInterrupt) -> int:
    return stop.number if isinstance(stop, StopSignal) else int(signal.SIGINT)


def _stop(number: int, _frame: object) -> None:
    raise StopSignal(number)


def _once_more(lost: UnraisableHookArgs) -> None:
    """What is raised while an object is deleted is lost, with a traceback; a signal comes again after it."""
    if isinstance(lost.exc_value, KeyboardInterrupt):
        soon = threading.Timer(SOON, os.kill, (os.getpid(), signal_of(lost.exc_value)))
        soon.daemon = True
        soon.start()
    else:
        sys.__unraisablehook__(lost)
