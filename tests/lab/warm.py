"""Runs `doctor`, and other programs, without the time that Python takes to load them.

A process that has loaded everything waits for orders and forks for each of them: each run is a process of its
own, with the environment, folder, files and namespaces that its command line would have had.
"""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import gc
import importlib
import io
import json
import os
import select
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn

from tests.support.printed import ON_PAGES_OF_LOGS, assert_typable

from . import found

REPOSITORY = Path(__file__).resolve().parents[2]
READ_AT_THE_START = ("LANG", "LC_", "PYTHON")
"""Prefixes of the variables that Python itself reads when it starts."""
LONGEST_ORDER = 200_000
NAME = "doctor"
"""What a program is called."""
STREAMS = ((0, "rb", "strict"), (1, "wb", "strict"), (2, "wb", "backslashreplace"))


def suits(env: Mapping[str, str] | None) -> bool:
    """Whether these additions to an environment do not affect Python's own start."""
    return not any(name.startswith(READ_AT_THE_START) for name in env or ())


class Warm:
    """A program that is loaded once for each test process, at the first order; it ends with that process.

    `program` is a module: its `load` imports everything, its `main` is called with sys.argv and stdin.
    `variables` are those that count when it is loaded.
    """

    def __init__(self, program: str, **variables: str) -> None:
        self._program = program
        self._variables = variables
        self._lock = threading.Lock()
        self._server: socket.socket | None = None

    def run(
        self,
        args: Sequence[str],
        *,
        env: Mapping[str, str],
        cwd: Path | str,
        input: str = "",
        timeout: float = 300,
        inside: int | None = None,
    ) -> subprocess.CompletedProcess[str]:
        """Run the program to its end, in the mount and network namespaces of the process `inside`."""
        stdin, feed = os.pipe()
        started = self.start(args, env=env, cwd=cwd, inside=inside, stdin=stdin)
        expired = threading.Event()

        def kill() -> None:
            expired.set()
            os.kill(started.pid, signal.SIGKILL)

        killer = threading.Timer(timeout, kill)
        killer.start()
        try:
            with contextlib.suppress(BrokenPipeError), os.fdopen(feed, "wb") as written:
                written.write(input.encode())
            said = started.communicate()
        finally:
            killer.cancel()
        if expired.is_set():
            raise subprocess.TimeoutExpired([NAME, *args], timeout, *(text.encode() for text in said))
        return subprocess.CompletedProcess([NAME, *args], started.wait(), *said)

    def start(
        self,
        args: Sequence[str],
        *,
        env: Mapping[str, str],
        cwd: Path | str,
        inside: int | None = None,
        stdin: int | None = None,
    ) -> Started:
        """Start the program. `stdin` is closed here; without it, the program has none to read."""
        order = {"args": list(args), "env": dict(env), "cwd": str(cwd), "inside": inside}
        reads = [os.pipe() for _ in range(3)]
        given = os.open(os.devnull, os.O_RDONLY) if stdin is None else stdin
        theirs = [given, *(write for _, write in reads)]
        try:
            self._send(order, theirs)
        finally:
            for fd in theirs:
                os.close(fd)
        out, err, state = (io.FileIO(read) for read, _ in reads)
        return Started([NAME, *args], out, err, state)

    def _send(self, order: Mapping[str, object], fds: Sequence[int]) -> None:
        with self._lock:
            if self._server is None:
                self._server = self._start()
            socket.send_fds(self._server, [json.dumps(order).encode()], fds)

    def _start(self) -> socket.socket:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            process = subprocess.Popen(
                [
                    sys.executable,
                    "-c",
                    f"from tests.lab.warm import serve; serve({theirs.fileno()}, {self._program!r})",
                ],
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                cwd=REPOSITORY,
                env={**os.environ, "LANG": "C.UTF-8", **self._variables},
            )
        atexit.register(_end, process, ours)
        return ours


class Started:
    """A started program, with the methods of subprocess.Popen that tests use."""

    def __init__(self, args: Sequence[str], out: io.FileIO, err: io.FileIO, state: io.FileIO) -> None:
        self.args = args
        self.returncode: int | None = None
        self.pid = int(state.readline())
        self._state = state
        self._said = Reader(out), Reader(err)

    def poll(self) -> int | None:
        return self._ended(0)

    def wait(self, timeout: float | None = None) -> int:
        code = self._ended(timeout)
        if code is None:
            raise subprocess.TimeoutExpired(self.args, timeout or 0)
        return code

    def communicate(self, timeout: float | None = None) -> tuple[str, str]:
        """Wait for its end; returns what it printed."""
        self.wait(timeout)
        out, err = (reader.text() for reader in self._said)
        assert_typable(out, ON_PAGES_OF_LOGS)
        return out, err

    @property
    def told(self) -> str:
        """What it has printed to stderr so far."""
        return self._said[1].so_far

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def _ended(self, timeout: float | None) -> int | None:
        if self.returncode is None and select.select([self._state], [], [], timeout)[0]:
            self.returncode = int(self._state.readline())
            self._state.close()
        return self.returncode


class Reader(threading.Thread):
    """Reads a pipe to its end."""

    def __init__(self, pipe: io.FileIO) -> None:
        super().__init__(daemon=True)
        self._pipe, self._read = pipe, b""
        self.start()

    def run(self) -> None:
        with self._pipe:
            while piece := self._pipe.read(1 << 16):
                self._read += piece

    def text(self) -> str:
        self.join()
        return self.so_far

    @property
    def so_far(self) -> str:
        return self._read.decode("utf-8", "replace")


class WarmDoctor(Warm):
    """`doctor`. Its findings are kept for the record."""

    def run(self, args: Sequence[str], **how: Any) -> subprocess.CompletedProcess[str]:
        done = super().run(args, **how)
        found.keep(args, done.returncode, how["cwd"], done.stdout)
        return done


WARM = WarmDoctor("tests.lab.doctor_program")


def _end(process: subprocess.Popen[bytes], ours: socket.socket) -> None:
    ours.close()
    process.wait(10)


# The process that has loaded everything.


def serve(given: int, program: str) -> None:
    """Fork for each order until the other side closes the connection."""
    module = importlib.import_module(program)
    module.load()
    gc.freeze()
    orders = socket.socket(fileno=given)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for the children, which wait for the runs
    while True:
        message, fds, _, _ = socket.recv_fds(orders, LONGEST_ORDER, 4)
        if not message:
            return
        if os.fork() == 0:
            orders.close()
            _wait_for_run(module.main, json.loads(message), fds)
        for fd in fds:
            os.close(fd)


def _wait_for_run(main: Callable[[], None], order: Mapping[str, object], fds: Sequence[int]) -> NoReturn:
    """Start the run, and report its number and then its exit code."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    *files, state = fds
    pid = os.fork()
    if pid == 0:
        os.close(state)
        _become(main, order, files)
    os.write(state, f"{pid}\n".encode())
    for fd in files:
        os.close(fd)
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    os.write(state, f"{code}\n".encode())
    os._exit(0)


def _become(main: Callable[[], None], order: Mapping[str, object], files: Sequence[int]) -> NoReturn:
    code = 70
    try:
        for number, fd in enumerate(files):
            os.dup2(fd, number)
            os.close(fd)
        sys.stdin, sys.stdout, sys.stderr = (
            io.TextIOWrapper(os.fdopen(number, mode), line_buffering=number == 2, errors=errors)
            for number, mode, errors in STREAMS
        )
        _enter(order["inside"])
        os.chdir(str(order["cwd"]))
        env, args = order["env"], order["args"]
        assert isinstance(env, dict)
        assert isinstance(args, list)
        os.environ.clear()
        os.environ.update(env)
        sys.argv = [NAME, *args]
        main()
        code = 0
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 1
    finally:
        with contextlib.suppress(OSError, ValueError):
            sys.stdout.flush()
        os._exit(code & 0xFF)


def _enter(inside: object) -> None:
    if inside is None:
        return
    libc = ctypes.CDLL(None, use_errno=True)
    for kind in ("net", "mnt"):
        with open(f"/proc/{inside}/ns/{kind}") as namespace:
            if libc.setns(namespace.fileno(), 0):
                raise OSError(ctypes.get_errno(), f"setns {kind}")
