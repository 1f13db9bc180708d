"""What keeps an agent alive: its stdin, and a lease that every line there renews."""

import os
import signal
import time

LEASE = 10.0
LONGEST_COMMAND = 1 << 20


class Lifeline:
    """`grace`: how many seconds after its lease the kernel ends this process, even if it is stuck."""

    def __init__(self, grace: float = 0.0) -> None:
        self.grace = grace
        self.cut = False
        self._begun = b""

    def start(self) -> None:
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_SETMASK, set())
        self.hold(LEASE)

    def hold(self, lease: float) -> None:
        self.lease = lease
        self.deadline = time.monotonic() + lease
        signal.setitimer(signal.ITIMER_REAL, lease + self.grace)

    def lines(self) -> "list[bytes]":
        """The complete lines that have arrived."""
        try:
            data = os.read(0, 65536)
        except BlockingIOError:
            return []
        except OSError:
            data = b""
        lines = (self._begun + data).split(b"\n")
        self._begun = lines.pop()[-LONGEST_COMMAND:]
        if lines:
            self.hold(self.lease)
        self.cut = self.cut or not data
        return lines
