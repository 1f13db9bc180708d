"""The life of the relay: from the order to the end of the output.

It tells doctor in lines: `started PID`, `failed ERRNO`, `stopped`, `typed SIGNAL`, `ended STATUS`, `drained`,
and how many bytes each stream had `printed N N` when it was given a signal. Doctor says `signal NUMBER`,
`resize`, `front 0` or `front 1`, and `adopt` before it ends the command: from then on the relay is the parent
of what the command sets free, until doctor closes the pipe.
"""

import contextlib
import fcntl
import os
import select
import signal
import time

from doctor.run.relay.command import start
from doctor.run.relay.copy import Copy
from doctor.run.relay.kept import Kept
from doctor.run.relay.order import PASS, TERMINAL, CommandOrder, received
from doctor.run.relay.terminal import Terminal

FORWARDED = (
    *(signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2),
    *(signal.SIGTSTP, signal.SIGCONT),
)
OF_GROUP = (signal.SIGTSTP, signal.SIGCONT)
"""What a terminal sends to all processes of a job."""
WIDE = 1 << 20
"""The size of pipes, if the system allows it."""
SAME = 0.5
"""Seconds: a signal that came to us so shortly before was sent to the command too."""
WAIT = 0.05
"""Seconds in which it may still come."""
_SUBREAPER = 36


class Relay:
    """`orders` and `reports` are pipes to doctor; `file` keeps the output."""

    def __init__(self, orders: int, reports: int, file: int) -> None:
        self._orders, self._reports = orders, reports
        self._told = bytearray()
        order = received(orders)
        self._remove = order.remove
        self._caught = [each for each in FORWARDED if signal.getsignal(each) is not signal.SIG_IGN]
        self._bell = _bell((*self._caught, signal.SIGCHLD))
        if order.reaps:
            _adopt_orphans()
        screen = next((at for at, kind in order.copied() if kind == TERMINAL), None)
        self._terminal = (
            Terminal(screen, lambda number: self._tell(f"typed {number}")) if screen is not None else None
        )
        self._copies: list[Copy] = []
        self._pid = self._start(order, file)
        self._front = order.front
        self._over = False
        self._stays = False
        """Whether doctor still ends what the command has left."""
        self._said_drained = False
        self._seen: dict[int, float] = {}
        """When a signal came to us, who are beside the command."""
        self._due: list[tuple[float, int]] = []
        """When a signal is to be passed on."""

    def _start(self, order: CommandOrder, file: int) -> int:
        streams, ends = [0, 1, 2], []
        for place, (at, kind) in enumerate(order.copied()):
            if kind == TERMINAL and self._terminal is not None:
                source, end = self._terminal.master, self._terminal.slave
                sink = os.dup(self._terminal.real)  # a copy closes its sink; the real one is given back
                of_it = [each for each in (0, 1, 2) if order.streams[each] == TERMINAL]
            else:
                (source, end), sink = os.pipe(), at
                for pipe in (source, sink):
                    with contextlib.suppress(OSError):  # it is no pipe, or the system does not allow it
                        fcntl.fcntl(pipe, fcntl.F_SETPIPE_SZ, WIDE)
                of_it = [1, 2] if order.together else [at]
            for each in of_it:
                streams[each] = end
            ends.append(end)
            self._copies.append(Copy(source, sink, Kept(file, place)))
        try:
            pid = start(order, streams, self._terminal, self._caught)
        except OSError as error:
            self._clean()
            self._tell(f"failed {error.errno}")
            raise SystemExit from None
        for each in (*ends, *(at for at in (0, 1, 2) if order.streams[at] in (PASS, TERMINAL))):
            _let_go(each)
        return pid

    def run(self) -> None:
        self._tell(f"started {self._pid}")
        self._show(self._front)
        for copy in self._copies:
            copy.start()
        poll = select.poll()
        poll.register(self._bell, select.POLLIN)
        poll.register(self._orders, select.POLLIN)
        while self._stays or not (self._over and all(each.ended.is_set() for each in self._copies)):
            for ready, _ in poll.poll(self._patience()):
                if ready == self._bell:
                    self._note(os.read(self._bell, 1024))
                elif not self._obey():  # doctor is gone
                    poll.unregister(self._orders)
                    self._stays = False
                    self._show(False)
            self._pass_on()
            self._report()
        self._clean()

    def _clean(self) -> None:
        self._show(False)
        if self._remove:
            with contextlib.suppress(OSError):
                os.unlink(self._remove)

    def _patience(self) -> int | None:
        """Milliseconds until something is due. At the end, threads say by themselves when they are done."""
        if self._over:
            return 20
        return max(1, int(1000 * (self._due[0][0] - time.monotonic()))) if self._due else None

    def _note(self, numbers: bytes) -> None:
        self._seen.update(dict.fromkeys(numbers, time.monotonic()))
        if signal.SIGCHLD in numbers:
            self._reap()

    def _reap(self) -> None:
        with contextlib.suppress(ChildProcessError):
            while True:
                pid, status = os.waitpid(-1, os.WNOHANG | os.WUNTRACED)
                if not pid:
                    return
                if pid != self._pid:
                    continue
                if os.WIFSTOPPED(status):
                    if self._terminal is not None:
                        self._show(False)
                        self._tell("stopped")
                    continue
                self._over = True
                self._tell(f"ended {status}")
                for copy in self._copies:
                    copy.drain()

    def _report(self) -> None:
        if self._over and not self._said_drained and all(each.drained.is_set() for each in self._copies):
            self._said_drained = True
            self._show(False)
            self._tell("drained")

    def _obey(self) -> bool:
        """Do what doctor says; False if it is gone."""
        with contextlib.suppress(BlockingIOError):
            more = os.read(self._orders, 4096)
            if not more:
                return False
            self._told += more
        *lines, rest = self._told.split(b"\n")
        self._told = bytearray(rest)
        for line in lines:
            what, _, value = line.decode().partition(" ")
            if what == "signal":
                self._tell(f"printed {' '.join(str(each.printed()) for each in self._copies)}")
                self._due.append((time.monotonic() + WAIT, int(value)))
            elif what == "front":
                self._show(value == "1")
            elif what == "adopt":
                _adopt_orphans()
                self._stays = True
            elif what == "resize" and self._terminal is not None:
                self._terminal.resize()
        return True

    def _pass_on(self) -> None:
        """Pass on the signals that came to doctor alone: the command has the others."""
        now = time.monotonic()
        while self._due and self._due[0][0] <= now:
            _, number = self._due.pop(0)
            if self._over or now - self._seen.pop(number, -SAME) < SAME + WAIT:
                continue
            with contextlib.suppress(ProcessLookupError, PermissionError):
                of_group = self._terminal is not None and number in OF_GROUP
                (os.killpg if of_group else os.kill)(self._pid, number)

    def _show(self, front: bool) -> None:
        """Take the real terminal, or leave it to others."""
        if self._terminal is not None:
            (self._terminal.take if front and not self._over else self._terminal.give_back)()

    def _tell(self, line: str) -> None:
        with contextlib.suppress(OSError):
            os.write(self._reports, f"{line}\n".encode())


def _bell(numbers: tuple[int, ...]) -> int:
    """A pipe that has a byte for each signal that comes."""
    bell, ring = os.pipe()
    for end in (bell, ring):
        os.set_blocking(end, False)
    signal.set_wakeup_fd(ring, warn_on_full_buffer=False)
    for number in numbers:
        signal.signal(number, lambda *_: None)
    return bell


def _adopt_orphans() -> None:
    import ctypes  # slow, and seldom needed

    ctypes.CDLL(None).prctl(_SUBREAPER, 1, 0, 0, 0)


def _let_go(stream: int) -> None:
    """Close a stream that only the command needs. Its number stays taken."""
    if stream > 2:
        os.close(stream)
        return
    null = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
    os.dup2(null, stream)
    os.close(null)


def main(orders: int, reports: int, file: int) -> None:
    for each in (orders, reports, file):
        os.set_inheritable(each, False)
    Relay(orders, reports, file).run()
    os._exit(0)
