"""Scripts and sessions over SSH, without a single `ssh` process."""

import threading
from collections.abc import Sequence

import paramiko

from doctor.model import Host
from doctor.transport import errors
from doctor.transport.program import Program
from doctor.transport.ssh.config import SshConfig
from doctor.transport.ssh.hosts import HostConnection, Jumps
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
                        link = self._jumps.connect(door, turn.begin)
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
