"""Where rank 0 listens for the others: on the first of the job's ports that is free there.

One thread greets all visitors. A visitor that has not yet proved that it belongs to this job cannot block the
others: it has seconds for the whole handshake, and if too many come at once, the slowest one must go.
"""

import contextlib
import errno
import math
import selectors
import socket
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from doctor.errors import NotExamined
from doctor.exam.in_job.handshake import HANDSHAKE, LONGEST_LINE, Greeting, Stranger, endpoint
from doctor.exam.in_job.job_key import VARIABLE
from doctor.exam.in_job.messages import MEMBER, SILENT, UNREADABLE, Hello
from doctor.exam.in_job.rank_env import JobRank
from doctor.exam.in_job.socket_owner import SocketTables, other_holder, peer_is_ours
from doctor.exam.in_job.wire import CONTROL, PIECE, FrameReader

MOST_VISITORS = 256
BACKLOG = 1024
PAUSE = 0.05
GRACE = 0.5
"""Seconds that each visitor gets, however many come."""


@dataclass(slots=True, eq=False)
class RankVisitor:
    """A visitor. It has a `reader` once it has proved itself, and a `hello` once it has introduced itself."""

    connection: socket.socket
    greeting: Greeting
    came: float
    until: float
    line: bytearray = field(default_factory=bytearray)
    reader: FrameReader | None = None
    hello: Hello | None = None


class RankListener:
    """`let_in` gets each visitor that has proved to belong to this job, with its first message.

    `passed_over`: port that another user holds -> its uid. `turned_away`: what was odd about visitors.
    """

    def __init__(self, seat: JobRank, let_in: Callable[[RankVisitor], object]) -> None:
        self._seat = seat
        self._let_in = let_in
        self._visitors: dict[RankVisitor, None] = {}
        self._selector = selectors.DefaultSelector()
        self._tables = SocketTables()
        self._closed = False
        self.turned_away: dict[str, None] = {}
        self.passed_over: dict[int, int] = {}
        self._socket = self._open_socket()
        self._socket.setblocking(False)
        self._thread = threading.Thread(target=self._serve, name="in-job door", daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._closed = True
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)  # closing alone does not wake a waiting thread
        self._thread.join(1.0)
        self._socket.close()

    def _open_socket(self) -> socket.socket:
        both = socket.has_dualstack_ipv6()
        family = socket.AF_INET6 if both else socket.AF_INET
        for port in self._seat.ports:
            with contextlib.suppress(OSError):
                return socket.create_server(("", port), family=family, backlog=BACKLOG, dualstack_ipv6=both)
            self.look_for_others()
        ports = ", ".join(map(str, self._seat.ports))
        held = "".join(
            f"; {port} is held by the user with uid {uid}" for port, uid in self.passed_over.items()
        )
        raise NotExamined(
            f"--in-job: none of the ports {ports} is free on {socket.gethostname()}, "
            f"the host of rank 0{held}.",
            "See who holds them: ss -ltnpe. Another run of doctor may not have ended yet. "
            f"If all ranks share a {VARIABLE}, nobody can guess their ports.",
        )

    def look_for_others(self) -> None:
        """Note who else holds a port at which ranks look for rank 0."""
        for port in self._seat.ports:
            if (holder := other_holder(port)) is not None:
                self.passed_over[port] = holder

    def _serve(self) -> None:
        while not self._closed:
            now = time.monotonic()
            for visitor in [visitor for visitor in self._visitors if visitor.until <= now]:
                self._turn_away(visitor)
            room = self._room_at()
            moments = [room, *(visitor.until for visitor in self._visitors)]
            until = min((moment for moment in moments if moment > now), default=None)
            self._await_knocks(room <= now)
            for key, _ in self._selector.select(None if until is None else until - now):
                if key.data is not None:
                    self._hear(key.data)
                elif not self._closed:
                    self._accept()
        for visitor in list(self._visitors):
            self._turn_away(visitor)
        self._selector.close()

    def _await_knocks(self, wanted: bool) -> None:
        if wanted and self._socket not in self._selector.get_map():
            self._selector.register(self._socket, selectors.EVENT_READ, None)
        elif not wanted and self._socket in self._selector.get_map():
            self._selector.unregister(self._socket)

    def _room_at(self) -> float:
        """When the next visitor may be accepted: now, or once the oldest has had its grace period."""
        if len(self._visitors) < MOST_VISITORS:
            return -math.inf
        return self._oldest().came + GRACE

    def _oldest(self) -> RankVisitor:
        """The oldest visitor that has not proved itself, or else the oldest of all."""
        first = next(iter(self._visitors))
        return next((visitor for visitor in self._visitors if visitor.reader is None), first)

    def _accept(self) -> None:
        """Accept all that there is room for, so that their owners are looked up together."""
        while self._room_at() <= time.monotonic():
            try:
                connection, _ = self._socket.accept()
            except BlockingIOError:
                return
            except OSError as error:  # also if the visitor has already left
                if error.errno in (errno.EMFILE, errno.ENFILE) and self._visitors:
                    self._turn_away(self._oldest())
                time.sleep(PAUSE)
                return
            if len(self._visitors) >= MOST_VISITORS:
                self._turn_away(self._oldest())
            self._greet(connection)

    def _greet(self, connection: socket.socket) -> None:
        try:
            connection.setblocking(False)
            greeting = Greeting(self._seat.token, endpoint(connection.getsockname()))
            connection.send(greeting.opening)
        except OSError:
            connection.close()
            return
        now = time.monotonic()
        visitor = RankVisitor(connection, greeting, now, now + HANDSHAKE)
        self._visitors[visitor] = None
        self._selector.register(connection, selectors.EVENT_READ, visitor)

    def _hear(self, visitor: RankVisitor) -> None:
        if visitor not in self._visitors:  # it was turned away meanwhile
            return
        try:
            data = visitor.connection.recv(PIECE)
            if not data:
                raise Stranger
            self._take(visitor, data)
        except BlockingIOError:
            return
        except (OSError, Stranger, *UNREADABLE) as why:
            if isinstance(why, Stranger) and str(why):
                self.turned_away[str(why)] = None
            self._turn_away(visitor)
            return
        if visitor.hello is not None:
            self._leave(visitor)
            self._let_in(visitor)

    def _take(self, visitor: RankVisitor, data: bytes) -> None:
        if visitor.reader is None:
            visitor.line += data
            line, end, data = bytes(visitor.line).partition(b"\n")
            if len(line) >= LONGEST_LINE:
                raise Stranger
            if not end:
                return
            self._answer(visitor, line)
        assert visitor.reader is not None
        visitor.reader.add(data)
        frame = visitor.reader.next()
        if frame is not None:
            message = MEMBER.decode(frame[2]) if frame[0] == CONTROL else None
            if not isinstance(message, Hello):
                raise Stranger
            visitor.hello = message

    def _answer(self, visitor: RankVisitor, line: bytes) -> None:
        greeting = visitor.greeting
        visitor.connection.send(greeting.answer(line))
        if greeting.seals is None:
            raise Stranger(
                f"a connection to another address or port came to {greeting.here} by a relay or translation"
            )
        if not self._seat.secret:
            try:
                peer_is_ours(visitor.connection, self._tables, visitor.came)
            except Stranger as why:
                raise Stranger(f"a stranger came as a rank: {why}" if str(why) else "") from None
        visitor.reader = FrameReader(greeting.seals.into)
        visitor.until = time.monotonic() + SILENT  # for its first message

    def _turn_away(self, visitor: RankVisitor) -> None:
        self._leave(visitor)
        visitor.connection.close()

    def _leave(self, visitor: RankVisitor) -> None:
        del self._visitors[visitor]
        self._selector.unregister(visitor.connection)
