"""Asks the servers that a job runs on this host: NCCL's RAS and torch's worker server.

Each question ends by its deadline, whatever the server does.
"""

import json
import re
import socket
import struct
import time
from typing import Any

from doctor.agents.onhost.recorder import TOO_LARGE, UnreadableDump, numbers

SECONDS = 4.0
"""The time for one complete question."""
CONNECT = 1.0
COLLECT = 2
"""Seconds that RAS waits for ranks that do not respond."""
MOST = 16 << 20
RAS_PORT = 28028
TRACE = (
    b"POST /handler/fr_trace_json HTTP/1.1\r\n"
    b"Host: localhost\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
)


class NoAnswer(Exception):
    """There is no usable answer; the text gives the reason."""


class _ServerLine:
    """A connection that is read until its deadline."""

    def __init__(self, connection: socket.socket, deadline: float) -> None:
        self.connection = connection
        self.deadline = deadline
        self.heard = b""

    def say(self, data: bytes) -> None:
        self._patience()
        self.connection.sendall(data)

    def more(self) -> bool:
        """Read more; False at the end."""
        self._patience()
        data = self.connection.recv(65536)
        self.heard += data
        if len(self.heard) > MOST:
            raise NoAnswer(f"it sent more than {MOST >> 20} MiB")
        return bool(data)

    def line(self) -> str:
        while b"\n" not in self.heard:
            if not self.more():
                raise NoAnswer("it hung up")
        line, _, self.heard = self.heard.partition(b"\n")
        return line[:200].decode("utf-8", "replace").strip()

    def _patience(self) -> None:
        left = self.deadline - time.monotonic()
        if left <= 0:
            raise NoAnswer(f"no answer within {SECONDS:g} s")
        self.connection.settimeout(left)


def _why(error: OSError) -> str:
    """The error in words. A timeout has no errno."""
    return f"no connection ({error.strerror})" if error.errno else f"no answer within {SECONDS:g} s"


def ras(address: "tuple[str, int]") -> str:
    """The state of all communicators, as compact JSON. Raises NoAnswer."""
    try:
        connection = socket.create_connection(address, CONNECT)
    except OSError as error:
        raise NoAnswer(_why(error)) from error
    with connection:
        try:
            return _compact(_status(_ServerLine(connection, time.monotonic() + SECONDS)))
        except OSError as error:
            raise NoAnswer(_why(error)) from error


def _status(line: _ServerLine) -> bytes:
    line.say(b"CLIENT PROTOCOL 2\n")
    if not line.line().startswith("SERVER PROTOCOL "):
        raise NoAnswer("it is not NCCL's RAS")
    line.say(b"TIMEOUT %d\n" % COLLECT)
    line.line()
    line.say(b"SET FORMAT json\n")
    if line.line() != "OK":
        raise NoAnswer("it answers in text only; JSON needs NCCL 2.28.7")
    line.say(b"VERBOSE STATUS\n")
    while line.more():
        pass
    return line.heard


def _compact(answer: bytes) -> str:
    text = answer.decode("utf-8", "replace")
    try:
        return json.dumps(json.loads(text), separators=(",", ":"))
    except (ValueError, RecursionError):
        return text
    except MemoryError as error:
        raise NoAnswer(TOO_LARGE) from error


def ras_address(environ: "dict[str, str]") -> "tuple[str, int] | None":
    """The address of the RAS of a process with these variables; None if it is not on this host."""
    if environ.get("NCCL_RAS_ENABLE", "1").strip() == "0":
        return None
    host, _, port = environ.get("NCCL_RAS_ADDR", "").strip().rpartition(":")
    number = int(port) if re.match(r"\d{1,5}\Z", port) else RAS_PORT
    bare = host.strip("[]")
    if bare in ("::", "::1"):
        return "::1", number
    here = bare in ("", "localhost", "0.0.0.0") or bare.startswith("127.")
    return (bare if bare.startswith("127.") else "127.0.0.1", number) if here and number < 65536 else None


def worker_trace(path: str) -> "tuple[int, bytes]":
    """The PID behind a socket of torch's worker server, and its flight recorder's dump. Raises NoAnswer."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        try:
            connection.settimeout(CONNECT)
            connection.connect(path)
            peer = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)
            line = _ServerLine(connection, time.monotonic() + SECONDS)
            line.say(TRACE)
            while line.more():
                pass
        except OSError as error:
            raise NoAnswer(_why(error)) from error
    head, _, body = line.heard.partition(b"\r\n\r\n")
    if not re.match(rb"HTTP/1\.\d 200 ", head):
        raise NoAnswer("it has no flight recorder")
    return int(struct.unpack("3i", peer)[0]), body


def ras_state(place: "tuple[str, int]") -> "dict[str, Any]":
    """The answer of RAS. `careful.carefully` runs this, and the next one."""
    at = time.time()
    try:
        return {"at": at, "text": ras((place[0], place[1]))}
    except NoAnswer as error:
        return {"at": at, "problem": str(error)}


def server_dump(path: str) -> "dict[str, Any]":
    """The dump that torch's worker server gives, and the PID of the server."""
    answer = {"at": time.time()}  # type: dict[str, Any]
    try:
        answer["pid"], body = worker_trace(path)
        answer["text"] = numbers(body)
    except (NoAnswer, UnreadableDump) as error:
        answer["problem"] = str(error)
    return answer
