"""Scripts and sessions over SSH, without a single `ssh` process."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence

import paramiko

from doctor.model import Host, UnreachedKind
from doctor.transport import errors
from doctor.transport.errors import CannotReach, cannot
from doctor.transport.program import Program
from doctor.transport.ssh import errors as ssh_errors
from doctor.transport.ssh.config import DEEPEST_JUMP, HostSettings, SshConfig
from doctor.transport.ssh.connection import Dial, SshConnection
from doctor.transport.ssh.login import SharedState
from doctor.transport.ssh.settings import SshSettings
from doctor.transport.threads import ThreadedTransport, Turn


class SshTransport(ThreadedTransport):
    """See `Transport`. Raises UsageError for a broken ssh_config, and in `run` for one host's settings."""

    name = "ssh"
    descriptors_each = 3

    def __init__(self, hosts: Sequence[Host], settings: SshSettings) -> None:
        super().__init__(len(hosts), settings.fanout)
        self._config = SshConfig(settings)
        self._shared = SharedState(warn=self.warn)
        self._hosts = {host.name: host for host in hosts}
        self._doors: dict[str, HostConnection] = {}
        self._jumps = Jumps(self._config, self._shared)
        self._starts = threading.Semaphore(self.descriptors.starts)

    def program(self, host: str, command: str, turn: Turn) -> Program:
        door = self._door(host)
        with door.lock:
            while True:
                link = door.link
                if link is None or link.full or not link.alive():
                    with self._starts:
                        link = self._jumps.connect(door, door.settings.jumps, turn.begin)
                try:
                    return link.start(command, turn.left())
                except paramiko.ChannelException as refused:
                    if not link.used:
                        words = errors.quoted(refused.text)
                        said = f" ({words})" if words else ""
                        raise errors.cannot("no session", words, link.to, said=said) from None
                    link.full = True  # MaxSessions: another connection has room

    def descriptors_of(self, host: str) -> int:
        return self.descriptors_each if self._door(host).settings.proxy_command else 1

    def _door(self, host: str) -> HostConnection:
        """Settings are looked up in the host's own time: a command in ssh_config (Match exec) may hang."""
        if host not in self._doors:
            with self._starts:
                self._doors[host] = HostConnection(self._config.of(self._hosts[host]))
        return self._doors[host]

    def give_up(self, host: str) -> str:
        door = self._doors.get(host)
        if door is None:
            return "it waited for its turn"
        doing = door.doing
        door.drop()
        return doing

    def close(self) -> None:
        self._shared.closing.set()
        self._config.close()
        for door in list(self._doors.values()):
            door.drop()
        self._jumps.drop()
        self._shared.keys.close()


HANDSHAKES_PER_JUMP = 8
Begin = Callable[[], float]


class HostConnection:
    """The way to one host: the connection to use next, and everything that must be dropped in the end."""

    def __init__(self, settings: HostSettings) -> None:
        self.settings = settings
        self.lock = threading.Lock()
        self.link: SshConnection | None = None
        self._dial: Dial | None = None
        self._links: list[SshConnection] = []

    @property
    def doing(self) -> str:
        return self._dial.doing if self._dial is not None else "it waited for its turn"

    def connect(self, shared: SharedState, through: SshConnection | None, deadline: float) -> SshConnection:
        """A new connection. An old one stays open for what still runs on it. Raises CannotReach."""
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
    """The jump hosts. The first thread makes the connection; the others wait for it."""

    def __init__(self, config: SshConfig, shared: SharedState) -> None:
        self._config = config
        self._shared = shared
        self._lock = threading.Lock()
        self._jumps: dict[tuple[str, ...], _Jump] = {}

    def drop(self) -> None:
        with self._lock:
            jumps = list(self._jumps.values())
        for jump in jumps:
            jump.door.drop()

    def connect(self, door: HostConnection, hops: tuple[str, ...], begin: Begin) -> SshConnection:
        """Through its jump hosts if it has any; `begin` starts the host's time. Raises CannotReach."""
        if not hops:
            return door.connect(self._shared, None, begin())
        jump = self._jump(hops, begin)
        with jump.room:
            return door.connect(self._shared, jump.door.link, begin())

    def _jump(self, hops: tuple[str, ...], begin: Begin) -> _Jump:
        """The last of `hops`, connected. Raises CannotReach (JUMP), in the same words for every host."""
        jump = self._look_up(hops)
        with jump.lock:
            if jump.failed is not None:
                raise jump.failed
            link = jump.door.link
            if link is None or not link.alive():
                try:
                    self.connect(jump.door, jump.before, begin)
                except CannotReach as why:
                    jump.failed = (
                        why if why.kind is UnreachedKind.JUMP else ssh_errors.jump_failed(hops[-1], why)
                    )
                    raise jump.failed from None
        return jump

    def _look_up(self, hops: tuple[str, ...]) -> _Jump:
        """Before any lock is held: in a circle, each would wait for the other. Raises CannotReach."""
        with self._lock:
            chain = hops
            for _ in range(DEEPEST_JUMP):
                if chain not in self._jumps:
                    self._jumps[chain] = _Jump(chain, self._config.jump(chain[-1]))
                chain = self._jumps[chain].before
                if not chain:
                    return self._jumps[hops]
        raise ssh_errors.jump_failed(hops[-1], cannot("circle of jump hosts", depth=DEEPEST_JUMP))


class _Jump:
    def __init__(self, hops: tuple[str, ...], settings: HostSettings) -> None:
        self.door = HostConnection(settings)
        self.before = hops[:-1] or settings.jumps
        self.lock = threading.Lock()
        # sshd on a jump host counts each onward login as one of its own.
        self.room = threading.Semaphore(HANDSHAKES_PER_JUMP)
        self.failed: CannotReach | None = None
