"""Finds rank 0: a rank tries all possible places until one answers that belongs to this job."""

import socket
import threading
import time
from contextlib import suppress
from dataclasses import dataclass
from itertools import product
from queue import Empty, SimpleQueue
from typing import Any

from doctor.exam.in_job import handshake
from doctor.exam.in_job.rank_env import JobRank
from doctor.exam.in_job.socket_owner import peer_is_ours

CONNECT_SECONDS = 2.0
FIRST_WORD = 3.0
"""Seconds for rank 0 to speak first: other programs on a port mostly wait to be spoken to."""
PAUSE = 0.25


@dataclass(frozen=True, slots=True)
class FoundHead:
    """`sure`: only this user could have answered like this."""

    connection: socket.socket
    seals: handshake.Seals
    place: handshake.Endpoint
    sure: bool


@dataclass(frozen=True, slots=True)
class NoHead:
    """`strangers`: other programs answered where rank 0 might be."""

    why: str
    strangers: bool = False


def find_head(seat: JobRank, until: float) -> FoundHead | NoHead:
    """Rank 0, or why it was not found; returns before `until`, of time.monotonic."""
    why = ""
    strangers: dict[str, None] = {}
    while True:
        for head in seat.heads:
            for port in seat.ports:
                if time.monotonic() >= until:
                    return NoHead("; ".join(strangers) or why or "no answer", bool(strangers))
                try:
                    connection = _connect(head, port, until)
                except OSError as error:
                    if not why or time.monotonic() < until:  # a try that was cut short shows nothing
                        why = _words(error, head)
                    if isinstance(error, socket.gaierror | TimeoutError):
                        break
                    continue
                try:
                    return introduce(seat, connection, min(until, time.monotonic() + handshake.HANDSHAKE))
                except (OSError, handshake.Stranger) as error:
                    connection.close()
                    said = str(error) if isinstance(error, handshake.Stranger) else ""
                    strangers[f"port {port} is another program's" + (f": {said}" if said else "")] = None
        time.sleep(min(PAUSE, max(0.0, until - time.monotonic())))


def _connect(head: str, port: int, until: float) -> socket.socket:
    """A connection to the first of its addresses that accepts one."""
    last: OSError = TimeoutError()
    for family, _, _, _, address in _resolve(head, port, until):
        connection = socket.socket(family, socket.SOCK_STREAM)
        try:
            connection.settimeout(min(CONNECT_SECONDS, _seconds_left(until)))
            connection.connect(address)
        except OSError as error:
            connection.close()
            last = error
        else:
            return connection
    raise last


def _resolve(head: str, port: int, until: float) -> list[Any]:
    """Look the name up in a thread of its own, because a silent name server would delay us without limit."""
    found: SimpleQueue[list[Any] | OSError] = SimpleQueue()

    def ask() -> None:
        try:
            found.put(socket.getaddrinfo(head, port, type=socket.SOCK_STREAM))
        except OSError as error:
            found.put(error)

    threading.Thread(target=ask, name="in-job name", daemon=True).start()
    try:
        answer = found.get(timeout=_seconds_left(until))
    except Empty:
        raise socket.gaierror from None
    if isinstance(answer, OSError):
        raise answer
    return answer


def introduce(seat: JobRank, connection: socket.socket, until: float) -> FoundHead:
    """Shake hands with whoever listens there. Raises Stranger or OSError."""
    mine = handshake.Introduction(seat.token, handshake.endpoint(connection.getpeername()))
    said = mine.answer(_line(connection, min(until, time.monotonic() + FIRST_WORD)))
    sure = bool(seat.secret) or peer_is_ours(connection) is True  # it is accepted by now
    connection.settimeout(_seconds_left(until))
    connection.sendall(said)
    return FoundHead(connection, mine.confirm(_line(connection, until)), mine.there, sure)


def another_head(seat: JobRank, found: FoundHead, seconds: float) -> handshake.Endpoint | None:
    """Another place where rank 0 of this job answers; `seconds` is the limit for each place."""
    for head, port in product(seat.heads, (port for port in seat.ports if port != found.place.port)):
        until = time.monotonic() + seconds
        with suppress(OSError, handshake.Stranger), _connect(head, port, until) as connection:
            return introduce(seat, connection, until).place
    return None


def speaks_as_head(seat: JobRank, port: int) -> bool:
    """Whether who holds this port of rank 0's host begins as rank 0 would."""
    for head in seat.heads:
        until = time.monotonic() + FIRST_WORD
        with suppress(OSError, handshake.Stranger), _connect(head, port, until) as connection:
            return _line(connection, until).startswith(handshake.PROTOCOL)
    return False


def _line(connection: socket.socket, until: float) -> bytes:
    """Read one line, byte by byte: what follows the line is for another reader."""
    line = bytearray()
    while len(line) < handshake.LONGEST_LINE:
        connection.settimeout(_seconds_left(until))
        byte = connection.recv(1)
        if byte == b"\n":
            return bytes(line)
        if not byte:
            break
        line += byte
    raise handshake.Stranger


def _seconds_left(until: float) -> float:
    left = until - time.monotonic()
    if left <= 0:
        raise TimeoutError
    return left


def _words(error: OSError, head: str) -> str:
    if isinstance(error, socket.gaierror):
        return f"the name {head} cannot be resolved"
    if isinstance(error, TimeoutError):
        return "no answer, as when a firewall drops the connection"
    if isinstance(error, ConnectionRefusedError):
        return "nothing listens there"
    return error.strerror or "no connection"
