"""SIGTERM and SIGHUP end a run as Ctrl-C does: it reports what is known and leaves nothing behind."""

from __future__ import annotations

import signal


class StopSignal(KeyboardInterrupt):
    """A signal asked the run to end."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self.number = number


def stop_on_signals() -> None:
    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is not signal.SIG_IGN:  # nohup
            signal.signal(number, _stop)


def signal_of(stop: KeyboardInterrupt) -> int:
    return stop.number if isinstance(stop, StopSignal) else int(signal.SIGINT)


def _stop(number: int, _frame: object) -> None:
    raise StopSignal(number)
