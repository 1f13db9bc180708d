"""What another user of a host does to a job whose ranks call `doctor … --in-job`."""

from __future__ import annotations

import contextlib
import encodings.idna  # noqa: F401  # what another user cannot load any more: the interpreter may be in a home
import itertools
import os
import signal
import socket
import struct
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

import msgspec

from doctor.api import Ask
from doctor.exam.in_job.handshake import Greeting, endpoint
from doctor.exam.in_job.messages import RunVerdict, StartProgram, Welcome
from doctor.exam.in_job.wire import CONTROL, STDIN, FrameReader
from doctor.transport.question import MeshQuestion, ProbeQuestion

STRANGER = 4001
"""A user without other processes."""
FRAME = struct.Struct(">IBI")


@contextmanager
def another_user(port: int, serve: Callable[[socket.socket], None], uid: int = STRANGER) -> Iterator[None]:
    """A process of another user that holds a port on all addresses and serves every client."""
    ready, holds = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.setgroups([])
            os.setresgid(uid, uid, uid)
            os.setresuid(uid, uid, uid)
            held = socket.create_server(("", port), family=socket.AF_INET6, dualstack_ipv6=True)
            os.write(holds, b"!")
            while True:
                member, _ = held.accept()
                threading.Thread(target=serve, args=(member,), daemon=True).start()
        finally:
            os._exit(1)
    try:
        os.close(holds)
        assert os.read(ready, 1), f"port {port} is taken"
        yield
    finally:
        os.close(ready)
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)


def frames(*texts: str) -> bytes:
    """Control messages as they were sent before anything authenticated them."""
    return b"".join(FRAME.pack(len(text), 0, 0) + text.encode() for text in texts)


def relay(behind: int, inject: bytes) -> Callable[[socket.socket], None]:
    """Relay the messages of a rank and rank 0 until both are satisfied, and then speak for rank 0."""

    def serve(member: socket.socket) -> None:
        with contextlib.suppress(OSError), member, _connected(behind) as head:
            for out, into in ((head, member), (member, head), (head, member)):
                line = out.recv(4096)
                if not line:
                    return
                into.sendall(line)
            member.sendall(inject)
            while member.recv(4096):
                pass

    return serve


def _connected(port: int) -> socket.socket:
    while True:
        with contextlib.suppress(ConnectionRefusedError):
            return socket.create_connection(("localhost", port))
        time.sleep(0.02)


@dataclass(slots=True)
class FalseHead:
    """Serves every client as rank 0 would, with the token of the job, and sends what the attacker chose."""

    token: bytes
    says: Sequence[msgspec.Struct | tuple[int, int, bytes]]
    """Messages, and frames as kind, number and payload."""
    heard: list[tuple[int, int, bytes]] = field(default_factory=list)
    until: Callable[[FalseHead], bool] = lambda _: False
    """When it closes the connection."""

    def __call__(self, member: socket.socket) -> None:
        with contextlib.suppress(OSError), member, member.makefile("rb") as lines:
            greeting = Greeting(self.token, endpoint(member.getsockname()))
            member.sendall(greeting.opening)
            member.sendall(greeting.answer(lines.readline().rstrip(b"\n")))
            assert greeting.seals is not None
            for said in self.says:
                kind, number, payload = (
                    (CONTROL, 0, msgspec.json.encode(said)) if isinstance(said, msgspec.Struct) else said
                )
                frame = FRAME.pack(len(payload), kind, number) + payload
                member.sendall(frame + greeting.seals.out.of(frame))
            reader = FrameReader(greeting.seals.into)
            while data := lines.read1(65536):
                reader.add(data)
                while (come := reader.next()) is not None:
                    self.heard.append(come)
                if self.until(self):
                    return

    def texts(self, kind: int) -> str:
        """The received messages of that kind."""
        return b"".join(text for of, _, text in list(self.heard) if of == kind).decode()


def dribble(pause: float) -> Callable[[socket.socket], None]:
    """Begin as rank 0 does, one byte at a time."""

    def serve(member: socket.socket) -> None:
        with contextlib.suppress(OSError), member:
            for byte in itertools.cycle(b"cluster-doctor in-job "):
                member.sendall(bytes([byte]))
                time.sleep(pause)

    return serve


def main() -> None:
    """PORT TOKEN FILE: a false rank 0 that wants a file to be made."""
    port, token, file = sys.argv[1:]
    ask = Ask("$(touch {file})", (f"$(touch {file})",), python=f"touch {file};")
    head = FalseHead(
        bytes.fromhex(token),
        [
            Welcome("vm", "", 1, 1),
            StartProgram(1, ProbeQuestion("0" * 32, ("python",), ask)),
            StartProgram(2, MeshQuestion()),
            (STDIN, 2, f"hello 00 0 a[$(touch\t{file})]\n".encode()),
            RunVerdict(0),
        ],
    )
    with another_user(int(port), head):
        print("ready", flush=True)
        signal.pause()


if __name__ == "__main__":
    main()
