"""Work in a process of its own: what it loads goes with it, and its end breaks nothing."""

import contextlib
import math
import os
import pickle
import select
import signal
import sys
import threading
import time
from collections.abc import Callable
from typing import Any, Generic, TypeVar

from doctor.errors import DoctorError
from doctor.text.announce import announce
from doctor.text.terminal import tell

T = TypeVar("T")
_OURS: set[int] = set()
"""The PIDs of those whose results are awaited."""
TICK = 1.0
REMOVES = 10.0
"""Seconds that the work has to end, after a signal."""
STOPS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class StoppedPart(DoctorError):
    """A signal that was meant for doctor ended the work."""

    def __init__(self, number: int) -> None:
        super().__init__(f"{signal.Signals(number).name} ended a part of doctor.")
        self.number = number


class Apart(Generic[T]):
    """A fork that does the work. It writes to stderr only, and ends if this process does."""

    def __init__(self, work: Callable[[], T]) -> None:
        self.said = bytearray()
        self.answer, answers = os.pipe()
        """A pipe that is readable when there is news."""
        ends, self._line = os.pipe()
        _flush()
        self.pid = os.fork()
        if self.pid == 0:
            os.close(self.answer)
            os.close(self._line)
            _in_child(work, answers, ends)
        os.close(answers)
        os.close(ends)
        _OURS.add(self.pid)

    def poll(self, seconds: float | None = 0) -> bool:
        """Whether it is done; waits at most so long."""
        until = None if seconds is None else time.monotonic() + seconds
        while True:
            left = None if until is None else max(0.0, until - time.monotonic())
            if not select.select([self.answer], [], [], left)[0]:
                return False
            more = os.read(self.answer, 1 << 16)
            if not more:
                return True
            self.said += more

    def end(self) -> None:
        """End it, whatever it does."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)
        self._close()

    def result(self) -> T:
        """What the work returned, when it is done. Raises what the work raised, if it is an error of ours."""
        self._close()
        try:
            good, value = pickle.loads(bytes(self.said))
        except (pickle.UnpicklingError, EOFError):
            raise DoctorError("A part of doctor ended early.", "Its last lines are above.") from None
        if not good:
            raise value
        return value  # type: ignore[no-any-return]

    def _close(self) -> None:
        os.close(self.answer)
        os.close(self._line)
        _OURS.discard(self.pid)
        with contextlib.suppress(ChildProcessError):
            os.waitpid(self.pid, 0)


def _flush() -> None:
    for stream in (sys.stdout, sys.stderr):
        stream.flush()


def reap_orphans() -> None:
    """Leave no zombie, if this is the first process of a container: orphans are its children."""
    if os.getpid() != 1:
        return
    with contextlib.suppress(ChildProcessError):
        while dead := os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT):
            if dead.si_pid in _OURS:  # its turn comes
                return
            os.waitpid(dead.si_pid, os.WNOHANG)


def apart(work: Callable[[], T]) -> T:
    """The result of the work; signals that end doctor go to the work, which ends as it ends on them: it has
    some seconds to remove what it made.
    """
    before: dict[int, Any] = {}
    passed: list[int] = []
    until = math.inf

    def pass_on(number: int, _frame: object) -> None:
        nonlocal until
        passed.append(number)
        until = min(until, time.monotonic() + REMOVES)
        with contextlib.suppress(ProcessLookupError):
            os.kill(child.pid, number)

    _flush()
    held = signal.pthread_sigmask(signal.SIG_BLOCK, STOPS)  # none comes between the fork and its handler
    try:
        child = Apart(work)
        for number in map(int, STOPS):
            if signal.getsignal(number) is not signal.SIG_IGN:
                before[number] = signal.signal(number, pass_on)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, held)
    try:
        while not child.poll(TICK) and time.monotonic() < until:
            pass
        if passed and not child.said:  # it did not come to its end
            child.end()
            raise StoppedPart(passed[0])
        return child.result()
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _in_child(work: Callable[[], Any], answers: int, ends: int) -> None:
    code = 1
    try:
        with contextlib.suppress(OSError):
            os.setpgid(0, 0)
        for number in STOPS:
            if signal.getsignal(number) is not signal.SIG_IGN:
                signal.signal(number, _interrupt)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, STOPS)
        os.dup2(2, 1)  # stdout belongs to the command
        threading.Thread(target=_until, args=(ends,), daemon=True).start()
        try:
            said: tuple[bool, Any] = True, work()
        except DoctorError as error:
            said = False, error
        sys.stderr.flush()
        with open(answers, "wb") as pipe:
            pickle.dump(said, pipe)
        code = 0
    except KeyboardInterrupt:
        pass
    except BaseException as error:
        announce(f"internal error ({type(error).__name__}: {str(error)[:200]}).")
        if os.environ.get("DOCTOR_TRACEBACK"):
            import traceback

            tell(traceback.format_exc())
    finally:
        os._exit(code)


def _interrupt(_number: int, _frame: object) -> None:
    """End the work once: what it does on its way out is not interrupted again."""
    for number in STOPS:
        signal.signal(number, signal.SIG_IGN)
    raise KeyboardInterrupt


def _until(ends: int) -> None:
    """End with the other process, even if it was killed."""
    os.read(ends, 1)
    os.killpg(0, signal.SIGKILL)
