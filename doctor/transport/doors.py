"""Which connections there are: one for each host, one for each jump host that several hosts share."""

from __future__ import annotations

import threading
from collections.abc import Callable

from doctor.model import Reach
from doctor.transport import reasons
from doctor.transport.link import Dial, Link
from doctor.transport.login import Shared
from doctor.transport.reasons import Failed
from doctor.transport.sshconfig import DEEPEST_JUMP, HostSettings, SshConfig

HANDSHAKES_PER_JUMP = 8
Begin = Callable[[], float]


class Door:
    """The way into one host: the connection to use next, and all that must be dropped in the end."""

    def __init__(self, settings: HostSettings) -> None:
        self.settings = settings
        self.lock = threading.Lock()
        self.link: Link | None = None
        self._dial: Dial | None = None
        self._links: list[Link] = []

    @property
    def doing(self) -> str:
        return self._dial.doing if self._dial is not None else "it waited for its turn"

    def connect(self, shared: Shared, through: Link | None, deadline: float) -> Link:
        """A new connection. An old one stays open for what still runs on it. Raises Failed."""
        self._dial = Dial(self.settings, shared, through, deadline)
        self.link = self._dial.link()
        self._links.append(self.link)
        return self.link

    def drop(self) -> None:
        for link in list(self._links):
            link.drop()
        if self._dial is not None:
            self._dial.abort()


class Jumps:
    """The jump hosts. Whoever comes first makes the connection, the others wait for it."""

    def __init__(self, config: SshConfig, shared: Shared) -> None:
        self._config = config
        self._shared = shared
        self._lock = threading.Lock()
        self._jumps: dict[tuple[str, ...], _Jump] = {}

    def connect(self, door: Door, begin: Begin) -> Link:
        """A new connection to `door`, through its jump hosts if it has any. Raises Failed.

        `begin` starts the host's time, and is called when its turn has come on the jump host, too.
        """
        return self._onwards(door, door.settings.jumps, begin, 0)

    def drop(self) -> None:
        with self._lock:
            jumps = list(self._jumps.values())
        for jump in jumps:
            jump.door.drop()

    def _onwards(self, door: Door, hops: tuple[str, ...], begin: Begin, depth: int) -> Link:
        if not hops:
            return door.connect(self._shared, None, begin())
        jump = self._jump(hops, begin, depth)
        with jump.room:
            return door.connect(self._shared, jump.door.link, begin())

    def _jump(self, hops: tuple[str, ...], begin: Begin, depth: int) -> _Jump:
        """The last of `hops`, connected. Raises Failed (JUMP), in the same words for everyone."""
        if depth > DEEPEST_JUMP:
            raise reasons.jump_failed(hops[-1], reasons.jump_loop(DEEPEST_JUMP))
        with self._lock:
            jump = self._jumps.get(hops)
            if jump is None:
                jump = self._jumps[hops] = _Jump(self._config.jump(hops[-1]))
        with jump.lock:
            if jump.failed is not None:
                raise jump.failed
            link = jump.door.link
            if link is None or not link.alive():
                before = hops[:-1] or jump.door.settings.jumps
                try:
                    self._onwards(jump.door, before, begin, depth + 1)
                except Failed as why:
                    jump.failed = why if why.kind is Reach.JUMP else reasons.jump_failed(hops[-1], why)
                    raise jump.failed from None
        return jump


class _Jump:
    def __init__(self, settings: HostSettings) -> None:
        self.door = Door(settings)
        self.lock = threading.Lock()
        # sshd on a jump host counts each onward login among its own work.
        self.room = threading.Semaphore(HANDSHAKES_PER_JUMP)
        self.failed: Failed | None = None
