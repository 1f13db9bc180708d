"""Each host by the way that suits it: SSH, the system's `ssh`, or a command here that enters it (kubectl)."""

import shutil
import threading
from collections.abc import Sequence

from doctor.errors import UsageError
from doctor.model import Host
from doctor.transport.errors import CannotReach
from doctor.transport.program import Program
from doctor.transport.ssh.settings import SshSettings
from doctor.transport.threads import ThreadedTransport, Turn


class RoutedTransport(ThreadedTransport):
    """See `Transport`. Hosts with `enter_from` "controller" are entered from here, the others over SSH: by
    `ssh` itself if that is asked for, or, if no way is, where it has what our own SSH lacks.

    The command that enters a host (`Host.enter`) is already part of its script's command.
    """

    name = "ssh"
    descriptors_each = 5

    def __init__(self, hosts: Sequence[Host], settings: SshSettings, by: str = "ssh") -> None:
        super().__init__(len(hosts), settings.fanout)
        here = [host for host in hosts if host.enter_from == "controller"]
        there = [host for host in hosts if host.enter_from != "controller"]
        self._hosts = {host.name: host for host in there}
        self._settings, self._chooses = settings, by == "auto"
        self._ways: list[ThreadedTransport] = []
        self._lock = threading.Lock()
        self._way: dict[str, ThreadedTransport] = {}
        if here:
            from doctor.transport.local import LocalTransport

            self._add(LocalTransport(), here)
        if there and by == "openssh":
            from doctor.transport.openssh import OpensshTransport

            self.name = by
            self._add(OpensshTransport(there, settings), there)
        elif there:
            from doctor.transport.ssh.transport import SshTransport

            self._add(SshTransport(there, settings), there)

    def _add(self, way: ThreadedTransport, hosts: Sequence[Host]) -> None:
        self._ways.append(way)
        self._way.update((host.name, way) for host in hosts)

    @property
    def warnings(self) -> list[str]:
        return [*self._warnings, *(warning for way in self._ways for warning in way.warnings)]

    def descriptors_of(self, host: str) -> int:
        return self._way[host].descriptors_of(host)

    def program(self, host: str, command: str, turn: Turn) -> Program:
        try:
            return self._way[host].program(host, command, turn)
        except CannotReach as why:
            return self._program_by_ssh(host, command, turn, why)

    def _program_by_ssh(self, host: str, command: str, turn: Turn, why: CannotReach) -> Program:
        """The program, started by `ssh` itself if that may get where we did not. Raises `why` if not."""
        other = self._openssh() if why.by_ssh and self._chooses and host in self._hosts else None
        if other is None or self._way[host] is other:
            raise why
        try:
            begun = other.program(host, command, turn)
        except (CannotReach, UsageError):  # ssh may refuse a keyword of ssh_config that we pass over
            raise why from None
        self._way[host] = other
        self.warn(f"ssh itself was used where doctor's own SSH lacks {', '.join(why.by_ssh)}.")
        return begun

    def _openssh(self) -> ThreadedTransport | None:
        """The way of the system's `ssh`, made once it is needed; None if this machine has none."""
        from doctor.transport.openssh import OpensshTransport

        with self._lock:
            found = next((way for way in self._ways if isinstance(way, OpensshTransport)), None)
            if found is None and shutil.which("ssh"):
                found = OpensshTransport(list(self._hosts.values()), self._settings)
                self._ways.append(found)
            return found

    def give_up(self, host: str) -> str:
        return self._way[host].give_up(host)

    def close(self) -> None:
        for way in self._ways:
            way.close()
