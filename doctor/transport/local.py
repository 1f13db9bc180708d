"""Scripts and sessions on this machine, each in a process group of its own that ends with it."""

import atexit
import contextlib
import os
import select
import signal
import subprocess
import threading
import time
from collections.abc import Iterator

from doctor.transport import errors
from doctor.transport.program import Program
from doctor.transport.threads import ThreadedTransport, Turn

PIECE = 256 * 1024
TERM_GRACE = 0.2
LOOK_SECONDS = 0.005


class LocalProgram:
    """See `Program`."""

    def __init__(self, command: str) -> None:
        self._process = subprocess.Popen(
            ["/bin/sh", "-c", command],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,
            start_new_session=True,
        )
        self._pid = self._process.pid
        self._lock = threading.Lock()
        streams = (self._process.stdin, self._process.stdout, self._process.stderr)
        self._in, self._out, self._err = (-1 if s is None else s.fileno() for s in streams)
        for descriptor in (self._in, self._out, self._err):
            os.set_blocking(descriptor, False)
        self._open = {self._out, self._err}
        self._ear, self._bell = os.pipe()
        os.set_blocking(self._bell, False)
        self._full = False
        self._hung_up = False
        self._ended = False

    def wait(self, seconds: float) -> None:
        poll = select.poll()
        poll.register(self._ear, select.POLLIN)
        for descriptor in self._open:
            poll.register(descriptor, select.POLLIN)
        if self._full and not self._hung_up:
            poll.register(self._in, select.POLLOUT)
        for descriptor, _ in poll.poll(max(0.0, seconds) * 1000):
            if descriptor == self._ear:
                os.read(self._ear, 4096)

    def ring(self) -> None:
        with self._lock, contextlib.suppress(BlockingIOError):
            if not self._ended:
                os.write(self._bell, b"!")

    def take(self) -> tuple[bytes, bytes]:
        return self._read(self._out), self._read(self._err)

    def _read(self, descriptor: int) -> bytes:
        if descriptor not in self._open:
            return b""
        try:
            data = os.read(descriptor, PIECE)
        except BlockingIOError:
            return b""
        except OSError:
            data = b""
        if not data:
            self._open.discard(descriptor)
        return data

    def give(self, data: memoryview) -> int:
        if self._hung_up:
            raise BrokenPipeError
        try:
            sent = os.write(self._in, data)
        except BlockingIOError:
            sent = 0
        self._full = sent < len(data)
        return sent

    def finished(self) -> bool:
        return not self._open

    def broken(self) -> bool:
        return False

    def status(self, seconds: float) -> int | None:
        """Does not reap the process: until it is reaped, no other group can get the number of its group."""
        until = time.monotonic() + seconds
        while True:
            left = os.waitid(os.P_PID, self._pid, os.WEXITED | os.WNOWAIT | os.WNOHANG)
            if left is not None:
                return left.si_status if left.si_code == os.CLD_EXITED else 128 + left.si_status
            if time.monotonic() >= until:
                return None
            time.sleep(LOOK_SECONDS)

    def hang_up(self) -> None:
        with self._lock:
            self._close_stdin()

    def _close_stdin(self) -> None:
        if not self._hung_up:
            self._hung_up = True
            if self._process.stdin is not None:
                self._process.stdin.close()

    def end(self) -> None:
        """End the group gently, then the session. Processes that left the session are out of reach."""
        with self._lock:
            if self._ended:
                return
            self._ended = True
            self._close_stdin()
            self._signal(signal.SIGTERM)
            self.status(TERM_GRACE)
            self._signal(signal.SIGKILL)
            self._process.wait()
            for stream in (self._process.stdout, self._process.stderr):
                if stream is not None:
                    stream.close()
            os.close(self._ear)
            os.close(self._bell)

    def stop(self) -> None:
        """Called from another thread: make the program's own thread see its end."""
        with self._lock:
            if not self._ended:
                self._signal(signal.SIGTERM)
                self.status(TERM_GRACE)
                self._signal(signal.SIGKILL)

    def _signal(self, number: signal.Signals) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._pid, number)
        if number is signal.SIGKILL:  # `timeout` puts what it runs into a group of its own
            for pid in _session(self._pid):
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(pid, number)


def _session(leader: int) -> Iterator[int]:
    """By session, not by parent, which may have ended; none if the kernel does not show them."""
    with contextlib.suppress(OSError):
        for name in filter(str.isdigit, os.listdir("/proc")):
            with contextlib.suppress(OSError):
                if os.getsid(int(name)) == leader:
                    yield int(name)


class LocalTransport(ThreadedTransport):
    """See `Transport`. Every host is this machine."""

    name = "local"
    descriptors_each = 5

    def __init__(self) -> None:
        super().__init__()
        # Otherwise a running program would outlive an interpreter that exits early.
        atexit.register(self.close)

    def program(self, host: str, command: str, turn: Turn) -> Program:
        turn.begin()
        try:
            begun = LocalProgram(command)
        except OSError as error:
            raise errors.not_started(error) from None
        self._stops[host].append(begun.stop)
        return begun

    def close(self) -> None:
        atexit.unregister(self.close)
        stops = [stop for of_host in list(self._stops.values()) for stop in list(of_host)]
        threads = [threading.Thread(target=stop, daemon=True) for stop in stops]
        try:
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join(2 * TERM_GRACE)
        except RuntimeError:  # Python 3.12 and later start none while they exit
            for stop in stops:
                stop()
