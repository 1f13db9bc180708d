"""Each host by the way that suits it: SSH, or a command of this machine that enters it (kubectl)."""

from __future__ import annotations

from collections.abc import Sequence

from doctor.model import Host
from doctor.transport.program import Program
from doctor.transport.ssh.settings import SshSettings
from doctor.transport.threads import ThreadedTransport, Turn


class RoutedTransport(ThreadedTransport):
    """See `Transport`. Hosts with `enter_from` "controller" are entered from here, the others over SSH.

    The command that enters a host (`Host.enter`) is already part of its script's command.
    """

    name = "ssh"
    descriptors_each = 5

    def __init__(self, hosts: Sequence[Host], settings: SshSettings) -> None:
        super().__init__(settings.output_cap, len(hosts), settings.fanout)
        here = [host for host in hosts if host.enter_from == "controller"]
        there = [host for host in hosts if host.enter_from != "controller"]
        self._ways: list[ThreadedTransport] = []
        self._way: dict[str, ThreadedTransport] = {}
        if here:
            from doctor.transport.local import LocalTransport

            self._add(LocalTransport(settings.output_cap), here)
        if there:
            from doctor.transport.ssh.transport import SshTransport

            self._add(SshTransport(there, settings), there)

    def _add(self, way: ThreadedTransport, hosts: Sequence[Host]) -> None:
        self._ways.append(way)
        self._way.update((host.name, way) for host in hosts)

    @property
    def warnings(self) -> list[str]:
        return [warning for way in self._ways for warning in way.warnings]

    def descriptors_of(self, host: str) -> int:
        return self._way[host].descriptors_of(host)

    def program(self, host: str, command: str, turn: Turn) -> Program:
        return self._way[host].program(host, command, turn)

    def give_up(self, host: str) -> str:
        return self._way[host].give_up(host)

    def close(self) -> None:
        for way in self._ways:
            way.close()
