"""The transport of a run inside a job: programs on a host are run there by one of its ranks."""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING

from doctor.injob.messages import End, Ended, Failed, HangUp, Start
from doctor.injob.wire import PIECE, STDIN, STDOUT, Link
from doctor.model import Reach
from doctor.transport import reasons
from doctor.transport.local import LocalProgram
from doctor.transport.settings import MIB
from doctor.transport.talk import Program
from doctor.transport.threads import ThreadedTransport, Turn

if TYPE_CHECKING:
    from doctor.injob.hub import Hub

MOST_UNREAD = 16 * MIB
"""Beyond this a program that nobody reads is ended."""
_NUMBERS = itertools.count(1)


class RelayedProgram:
    """See `talk.Program`. What comes for it arrives in the thread of the hub's loop."""

    def __init__(self, link: Link, command: str) -> None:
        self.number = next(_NUMBERS)
        self.link = link
        self.why = ""
        self._changed = threading.Condition()
        self._rung = False
        self._out, self._err = bytearray(), bytearray()
        self._rc: int | None = None
        self._over = self._cut = self._hung_up = self._let_go = False
        link.tell(Start(self.number, command))

    # From the loop.

    def came(self, kind: int, data: bytes) -> None:
        with self._changed:
            (self._out if kind == STDOUT else self._err).extend(data)
            flooded = len(self._out) + len(self._err) > MOST_UNREAD
            self._changed.notify_all()
        if flooded:
            self.cut()

    def over(self, rc: int | None, message: Ended | Failed) -> None:
        with self._changed:
            self._over, self._rc = True, rc
            self.why = message.text if isinstance(message, Failed) else ""
            self._changed.notify_all()

    def cut(self) -> None:
        """The way to it broke."""
        with self._changed:
            self._cut = True
            self._changed.notify_all()

    # From the thread that talks to it.

    def wait(self, seconds: float) -> None:
        with self._changed:
            self._changed.wait_for(
                lambda: self._rung or self._out or self._err or self._over or self._cut, max(0.0, seconds)
            )
            self._rung = False

    def ring(self) -> None:
        with self._changed:
            self._rung = True
            self._changed.notify_all()

    def take(self) -> tuple[bytes, bytes]:
        with self._changed:
            out, err = bytes(self._out), bytes(self._err)
            self._out.clear()
            self._err.clear()
            return out, err

    def give(self, data: memoryview) -> int:
        if self._over or self._cut or self._hung_up:
            raise BrokenPipeError
        if self.link.full:
            return 0
        self.link.send(STDIN, self.number, bytes(data[:PIECE]))
        return min(len(data), PIECE)

    def finished(self) -> bool:
        return (self._over or self._cut) and not self._out and not self._err

    def broken(self) -> bool:
        return self._cut or bool(self.why)

    def status(self, seconds: float) -> int | None:
        until = time.monotonic() + seconds
        with self._changed:
            self._changed.wait_for(lambda: self._over or self._cut, max(0.0, until - time.monotonic()))
            return self._rc

    def hang_up(self) -> None:
        if not self._hung_up:
            self._hung_up = True
            self.link.tell(HangUp(self.number))

    def end(self) -> None:
        if not self._let_go:
            self._let_go = True
            self.link.tell(End(self.number))


class JobTransport(ThreadedTransport):
    """See `Transport`. `places` says which ranks are on a host; a host without any has never come."""

    name = "in-job"

    def __init__(self, hub: Hub, places: Mapping[str, tuple[str, str]], absent: Mapping[str, str]) -> None:
        super().__init__(8 * MIB)
        self._hub = hub
        self._places = places
        self._absent = absent
        self._programs: dict[str, list[Program]] = {}

    def program(self, host: str, command: str, turn: Turn) -> Program:
        turn.begin()
        if host not in self._places:
            raise reasons.Failed(Reach.RANK, self._absent[host], "")
        leader = self._hub.leader(self._places[host])
        if leader is None:
            raise reasons.Failed(Reach.LOST, "none of its ranks answers", "")
        begun: Program
        if leader.link is None:
            try:
                begun = LocalProgram(command)
            except OSError as error:
                raise reasons.not_started(error) from None
        else:
            begun = relayed = RelayedProgram(leader.link, command)
            self._hub.programs[relayed.number] = relayed
            if leader.link.closed:
                relayed.cut()
        self._programs.setdefault(host, []).append(begun)
        return begun

    def give_up(self, host: str) -> str:
        for program in self._programs.get(host, []):
            _stop(program)
        return "it ran"

    def close(self) -> None:
        for host in list(self._programs):
            self.give_up(host)


def _stop(program: Program) -> None:
    """Make the program's own thread see its end."""
    if isinstance(program, LocalProgram):
        program.stop()
    elif isinstance(program, RelayedProgram):
        program.end()
        program.cut()
