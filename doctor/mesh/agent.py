"""The mesh agent: listens and connects on behalf of one host.

Standard library only, Python 3.6 and later, one thread. It ends when its stdin ends, or if no line arrives
within its lease, and closes every socket.

Commands are words, one command per line, so that bash can read them if there is no Python:

    hello TOKEN NUMBER LEASE     the run's secret, this host's number, seconds of silence
    listen ID PORT ADDRESS       port 0: the kernel chooses
    connect ID LIMIT ANSWER TRIES PEER PORT ADDRESS LOAD
    beat, stop

PEER is the number that the other side must answer with; LOAD is how many bytes the connection carries after
that, first there and then back, because a path may lose large packets only.

Answers are JSON lines: ready, listener, link, bye (the last one).
"""

import contextlib
import errno
import os
import selectors
import socket
import struct
import sys
import time

from doctor.agents.onhost.segments import acknowledged, segments_of
from doctor.agents.onhost.voice import HostAgent

MOST = 256  # calls in flight, and simultaneous visitors
VISIT_SECONDS = 7.0  # longer than any caller waits, so that the caller hangs up first
LONGEST = 128
MOST_LOAD = 1 << 20
GOT = b"doctor-mesh GOT\n"
SELDOM = 0.2  # seconds between checks for a signal

OUTCOMES = {
    errno.ECONNREFUSED: "refused",
    errno.EHOSTUNREACH: "no-route",
    errno.ENETUNREACH: "no-route",
    errno.EHOSTDOWN: "no-route",
    errno.ENETDOWN: "no-route",
    errno.ECONNRESET: "reset",
}
LISTEN_ERRORS = {errno.EADDRINUSE: "in-use", errno.EADDRNOTAVAIL: "not-here", errno.EACCES: "denied"}


class WatchedSocket:
    """A socket in the selector: calls `ready` when it can continue, `expired` when its time is up."""

    def __init__(self, agent: "MeshAgent", sock: socket.socket, events: int, seconds: float) -> None:
        self.agent = agent
        self.sock = sock
        self.deadline = time.monotonic() + seconds
        self.heard = b""
        agent.wires.add(self)
        agent.selector.register(sock, events, self)

    def ready(self) -> None:
        raise NotImplementedError

    def expired(self) -> None:
        self.close()

    def read(self) -> "bool | None":
        """Read what arrived: True if the line is complete, False if not yet, None if the peer is gone."""
        try:
            data = self.sock.recv(LONGEST)
        except BlockingIOError:
            return False
        except OSError:
            data = b""
        self.heard += data
        return b"\n" in self.heard or len(self.heard) >= LONGEST if data else None

    def carry(self, load: "memoryview") -> "memoryview":
        """Send as much as there is room for; returns the rest."""
        with contextlib.suppress(BlockingIOError):
            load = load[self.sock.send(load) :]
        events = selectors.EVENT_READ | (selectors.EVENT_WRITE if load else 0)
        self.agent.selector.modify(self.sock, events, self)
        return load

    def close(self) -> None:
        """Close with a reset, not FIN, so that no side keeps in TIME_WAIT a port that a job may need."""
        if self in self.agent.wires:
            self.agent.wires.discard(self)
            self.agent.selector.unregister(self.sock)
            self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self.sock.close()
            self.agent.resume()


class MeshVisitor(WatchedSocket):
    """A connection to us. Without the run's token it gets no answer; else its load is sent back."""

    answered = False
    load = 0
    back = memoryview(b"")

    def ready(self) -> None:
        try:
            self.take_load() if self.answered else self.greet()
        except OSError:
            self.close()

    def take_load(self) -> None:
        if self.back:
            self.back = self.carry(self.back)
            return
        data = self.sock.recv(65536)
        self.load += len(data)
        if not data or self.load > MOST_LOAD:
            self.close()
            return
        self.deadline = time.monotonic() + VISIT_SECONDS
        if data.endswith(b"\n"):
            self.sock.send(GOT)  # on its own, because a small packet arrives where a large one does not
            self.back = self.carry(memoryview(load_of(self.load)))

    def greet(self) -> None:
        whole = self.read()
        if whole is None:
            self.close()
        elif whole:
            words = self.heard.split()
            if len(words) != 3 or words[:2] != [b"doctor-mesh", self.agent.token] or not words[2].isdigit():
                self.close()
                return
            self.answered = True
            self.deadline = time.monotonic() + VISIT_SECONDS
            self.sock.send(b"doctor-mesh OK %d\n" % self.agent.number)


class Caller(WatchedSocket):
    """One attempt to reach a peer. The caller hangs up first, once it has the answer and its load back.

    `carried` is what became of the load: "out" if it was lost on the way there, "back" if it was lost on the
    way back. If any part of it arrived, that way works, however slow it is: then it is "there", or "both".
    """

    connected = False
    carried = ""
    returned = acknowledged = 0

    def __init__(self, agent: "MeshAgent", sock: socket.socket, call: "list[str]", tries: int) -> None:
        self.id = int(call[0])
        self.call = call
        self.tries = tries
        self.size = int(call[7])
        self.load = memoryview(load_of(self.size))
        self.began = time.monotonic()
        self.ms = None  # type: float | None
        WatchedSocket.__init__(self, agent, sock, selectors.EVENT_WRITE, float(call[1]))

    def ready(self) -> None:
        if not self.connected:
            self.reached()
        elif self.carried:
            self.exchange()
        else:
            self.greeted()

    def reached(self) -> None:
        code = self.sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
        if code == errno.ETIMEDOUT:
            self.expired()
            return
        if code:
            self.finish(OUTCOMES.get(code, "error"), os.strerror(code))
            return
        self.connected = True
        self.ms = (time.monotonic() - self.began) * 1000
        self.wait()
        self.agent.selector.modify(self.sock, selectors.EVENT_READ, self)
        try:
            self.sock.send(b"doctor-mesh %s %d\n" % (self.agent.token, self.agent.number))
        except OSError as error:
            self.finish("reset", str(error))

    def greeted(self) -> None:
        whole = self.read()
        if whole is None:
            self.finish("reset", "the connection was closed before any answer")
        elif whole and self.heard != b"doctor-mesh OK %d\n" % int(self.call[4]):
            self.finish("wrong-answer", "something else answered: " + repr(self.heard[:60])[1:])
        elif whole and self.load:
            self.heard, self.carried = b"", "out"
            self.acknowledged = acknowledged(self.sock)
            self.wait()
            self.exchange()
        elif whole:
            self.finish("ok", "")

    def exchange(self) -> None:
        """Send the load. The peer first answers that it has arrived, and then sends it all back."""
        try:
            if self.load:
                self.load = self.carry(self.load)
                return
            data = self.sock.recv(65536)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self.carried = ""
            self.finish("reset", "the connection was closed with its load on the way")
            return
        if self.carried == "out":
            self.heard += data
            if not self.heard.startswith(GOT):
                return
            data, self.carried = self.heard[len(GOT) :], "back"
            self.wait()
        self.returned += len(data)
        if self.returned >= self.size:
            self.carried = "both"
            self.finish("ok", "")

    def wait(self) -> None:
        self.deadline = time.monotonic() + float(self.call[2])

    def expired(self) -> None:
        if self.carried:
            if self.carried == "back" and self.returned:
                self.carried = "both"
            elif self.carried == "out" and acknowledged(self.sock) > self.acknowledged:
                self.carried = "there"
            self.finish("ok", "")
        elif self.connected:
            self.finish("silent", "connected, but no answer within " + self.call[2] + " s")
        elif self.tries < int(self.call[3]):
            self.close()
            self.agent.dial(self.call, self.tries + 1)
        else:
            self.finish("dropped", "no answer of any kind within " + self.call[1] + " s")

    def finish(self, outcome: str, detail: str) -> None:
        lost = unresolved(self.call[6]) if outcome in ("dropped", "no-route") else []
        sent = segments_of(self.sock) if self.carried else (0, 0)
        self.close()
        self.agent.say(
            say="link",
            id=self.id,
            outcome=outcome,
            ms=self.ms,
            tries=self.tries,
            detail=detail,
            unresolved=lost,
            carried=self.carried,
            segments=sent,
        )


class MeshAgent(HostAgent):
    def __init__(self) -> None:
        HostAgent.__init__(self)
        self.selector = selectors.PollSelector()
        self.wires: set[WatchedSocket] = set()
        self.listeners: list[socket.socket] = []
        self.paused: list[socket.socket] = []
        self.queue: list[list[str]] = []
        self.token = b""
        self.number = -1

    def serve(self) -> None:
        self.selector.register(0, selectors.EVENT_READ, None)
        self.say(say="ready", agent="python " + sys.version.split()[0])
        while self.goes_on():
            while self.queue and self.count(Caller) < MOST:
                self.dial(self.queue.pop(0), 1)
            now = time.monotonic()
            nearest = min([now + SELDOM, *(wire.deadline for wire in self.wires)])
            self._speak_when_heard()
            for key, _ in self.selector.select(max(0.0, nearest - now)):
                if key.fileobj == 1:
                    self.flush()
                elif key.data is None:
                    for line in self.lifeline.lines():
                        self.obey(line)
                    self.resume()
                elif isinstance(key.data, WatchedSocket):
                    if key.data in self.wires:
                        key.data.ready()
                elif key.fileobj not in self.paused:
                    self.accept(key.data)
            # Only those overdue before the select: on a starved machine an answer may have arrived since.
            for wire in [wire for wire in self.wires if wire.deadline <= now]:
                wire.expired()

    def _speak_when_heard(self) -> None:
        """Watch for room to write if there are unsent messages."""
        if bool(self.unsaid) != (1 in self.selector.get_map()):
            if self.unsaid:
                self.selector.register(1, selectors.EVENT_WRITE)
            else:
                self.selector.unregister(1)

    def obey(self, line: bytes) -> None:
        words = line.decode("ascii").split() or ["beat"]
        if words[0] == "stop":
            self.over = True
        elif words[0] == "hello":
            self.token, self.number = words[1].encode("ascii"), int(words[2])
            self.hold(words[3])
        elif words[0] == "listen":
            self.listen(int(words[1]), int(words[2]), words[3])
        elif words[0] == "connect":
            self.queue.append(words[1:])

    def listen(self, id: int, port: int, address: str) -> None:
        sock = None
        try:
            family, place = resolve(address, port)
            sock = socket.socket(family, socket.SOCK_STREAM)
            sock.setblocking(False)
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            sock.bind(place)
            sock.listen(512)
        except OSError as error:
            if sock is not None:
                sock.close()
            self.say(
                say="listener", id=id, error=LISTEN_ERRORS.get(error.errno or 0, "error"), detail=str(error)
            )
            return
        self.listeners.append(sock)
        self.selector.register(sock, selectors.EVENT_READ, sock)
        self.say(say="listener", id=id, port=sock.getsockname()[1])

    def accept(self, listener: socket.socket) -> None:
        """Accept visitors, up to a limit; the others wait in the kernel's queue."""
        while True:
            try:
                if self.count(MeshVisitor) >= MOST:
                    raise OSError(errno.EMFILE, "enough visitors")
                sock = listener.accept()[0]
            except BlockingIOError:
                return
            except OSError as error:
                if error.errno in (errno.EMFILE, errno.ENFILE):
                    self.paused.append(listener)
                    self.selector.unregister(listener)
                return
            sock.setblocking(False)
            MeshVisitor(self, sock, selectors.EVENT_READ, VISIT_SECONDS)

    def count(self, kind: type) -> int:
        return sum(isinstance(wire, kind) for wire in self.wires)

    def resume(self) -> None:
        while self.paused:
            listener = self.paused.pop()
            self.selector.register(listener, selectors.EVENT_READ, listener)

    def dial(self, call: "list[str]", tries: int) -> None:
        try:
            family, place = resolve(call[6], int(call[5]))
            sock = socket.socket(family, socket.SOCK_STREAM)
        except OSError as error:
            self.say(say="link", id=int(call[0]), outcome="untested", tries=tries, detail=str(error))
            return
        sock.setblocking(False)
        code = sock.connect_ex(place)
        caller = Caller(self, sock, call, tries)
        if code not in (0, errno.EINPROGRESS):
            caller.finish(OUTCOMES.get(code, "error"), os.strerror(code))

    def end(self) -> None:
        for listener in self.listeners:
            listener.close()
        self.paused = []
        for wire in list(self.wires):
            wire.close()


def resolve(address: str, port: int) -> "tuple[int, tuple[str, int]]":
    """The socket family and address of a numeric address; never asks a name server."""
    family, _, _, _, place = socket.getaddrinfo(address, port, 0, 1, 0, socket.AI_NUMERICHOST)[0]
    return family, place  # type: ignore[return-value]


def load_of(size: int) -> bytes:
    """A line of `size` bytes."""
    return b" " * (size - 1) + b"\n" if size else b""


def unresolved(address: str) -> "list[str]":
    """Those of this address and the gateways for which the kernel's ARP requests get no answer."""
    try:
        with open("/proc/net/route") as routes, open("/proc/net/arp") as neighbours:
            gateways = [row.split()[2] for row in routes.readlines()[1:]]
            asked = {row.split()[0] for row in neighbours.readlines()[1:] if row.split()[2] == "0x0"}
        hops = {socket.inet_ntoa(struct.pack("=L", int(gateway, 16))) for gateway in gateways}
    except (OSError, ValueError, IndexError, struct.error):
        return []
    return sorted(asked & (hops | {address}))


def main(_program: bytes, _head: int) -> None:
    MeshAgent().live()
