"""Hosts behind gateways: our own SSH reaches the gateways, `ssh` there the hosts, with the gateway's keys.

ClusterShell's tree is not used: its gateways answer with pickles, by which a gateway could run any program
here, and they write to all hosts of their last command, so that no host could be talked to alone.
"""

import os
import secrets
import shlex
import socket
import threading
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import replace

from ClusterShell.NodeSet import NodeSetException
from ClusterShell.Topology import TopologyError, TopologyParser

from doctor.errors import UsageError
from doctor.model import Answer, AnswerEnd, Host, UnreachedKind
from doctor.text.nodeset import fold, unfold_users
from doctor.text.textfile import shown
from doctor.transport import Script
from doctor.transport.errors import CannotReach, Destination, cannot, lost, quoted
from doctor.transport.openssh import QUIET, ssh_words
from doctor.transport.program import Program
from doctor.transport.ssh import errors as ssh_errors
from doctor.transport.ssh.settings import DEFAULT_CONNECT_TIMEOUT, SshSettings
from doctor.transport.ssh.transport import SshTransport
from doctor.transport.threads import Outcome, ThreadedTransport, Turn

MOST_BEFORE = 64 * 1024
"""Bytes that are kept of what was said before a host was reached."""
NO_SSH = 127


def read_gateways(text: str, hosts: Sequence[Host]) -> Mapping[str, tuple[Host, ...]]:
    """The gateways to each host, the one to try first at the front. Raises UsageError."""
    if "/" in text:
        ways = _routes(text)
    else:
        named = [Host(each, each, at.user) for at in unfold_users(text) for each in at.hosts]
        ways = dict.fromkeys((host.name for host in hosts), named)
    if astray := [host.name for host in hosts if host.name not in ways]:
        raise UsageError(f"--via {shown(text)}: no route leads from this machine to {fold(astray)}.")
    gateways = {each.name for host in hosts for each in ways[host.name]}
    if both := sorted(gateways.intersection(*[{name for h in hosts for name in (h.name, h.address)}])):
        hint = "Leave it out of one of them."
        raise UsageError(f"--via: {fold(both)} is a gateway and one of the hosts.", hint)
    found = {}
    for turn, host in enumerate(hosts):
        its = deque(ways[host.name])
        its.rotate(-turn)
        found[host.name] = tuple(its)
    return found


def _routes(path: str) -> Mapping[str, list[Host]]:
    """The gateways to each host, as a topology.conf of ClusterShell says it for this machine."""
    if not os.path.isfile(path):
        raise UsageError(
            f"--via: there is no file {shown(path)}.", "Without a / it is a node set of gateways."
        )
    try:
        groups = TopologyParser(path).tree(socket.gethostname().partition(".")[0]).root.children()
    except (TopologyError, NodeSetException) as error:
        raise UsageError(f"--via {shown(path)}: {quoted(str(error))}.") from None
    if any(below.children() for group in groups for below in group.children()):
        raise UsageError(f"--via {shown(path)}: a gateway behind a gateway is not supported.")
    return {
        host: [Host(each, each) for each in map(str, group.nodeset)]
        for group in groups
        for host in map(str, group.children_ns() or ())
    }


class GatewayTransport(SshTransport):
    """See `Transport`. `ways`: see read_gateways."""

    def __init__(
        self, hosts: Sequence[Host], settings: SshSettings, ways: Mapping[str, tuple[Host, ...]]
    ) -> None:
        gateways = {each.name: each for found in ways.values() for each in found}
        super().__init__([*gateways.values()], replace(settings, user=None, port=None))
        self._behind = {host.name: host for host in hosts}
        self._ways, self._own = ways, settings
        self._locks = {name: threading.Lock() for name in gateways}
        self._failed: dict[str, CannotReach] = {}
        self._mark = f"doctor-{secrets.token_hex(8)}"

    def program(self, host: str, command: str, turn: Turn) -> Program:
        why = None
        for gateway in (each.name for each in self._ways[host]):
            with self._locks[gateway]:  # who waits here learns whether it has failed
                if (why := self._failed.get(gateway)) is not None:
                    continue
                try:
                    begun = super().program(gateway, self._command(host, command), turn)
                except CannotReach as failed:
                    if turn.left() <= 0:
                        raise
                    self._failed[gateway] = why = ssh_errors.jump_failed(gateway, failed)
                    self.warn(f"{why.summary.removesuffix('.')}. Other gateways were tried for its hosts.")
                    continue
            it, way = self._behind[host], (gateway, "ssh", *self._options(host))
            user, port = self._own.user or it.user or "", self._own.port or it.port or 22
            self._stops[host].append(begun.end)
            return _Through(begun, self._mark, Destination(host, it.address, port, user, way), gateway)
        assert why is not None
        raise why

    def ask(self, host: str, script: Script, turn: Turn) -> Outcome:
        outcome = super().ask(host, script, turn)
        how = outcome.end if isinstance(outcome, Answer) else outcome.kind
        cut = how in (AnswerEnd.LOST, UnreachedKind.LOST) and turn.left() > 0
        return super().ask(host, script, turn) if cut else outcome

    def _command(self, host: str, command: str) -> str:
        limit = max(1, round(self._own.connect_timeout or DEFAULT_CONNECT_TIMEOUT))
        more = ("LogLevel=ERROR", f"ConnectTimeout={limit}", "ServerAliveInterval=15")
        words = ["ssh", *self._options(host), *QUIET, *(word for each in more for word in ("-o", each))]
        return f"exec {shlex.join([*words, '--', host, f'echo; echo {self._mark}; {command}'])}"

    def _options(self, host: str) -> tuple[str, ...]:
        return ssh_words(self._behind[host], replace(self._own, jump=None, config_file=None, identities=()))

    def descriptors_of(self, host: str) -> int:  # noqa: ARG002  # connections are the gateways'
        return 0

    give_up = ThreadedTransport.give_up


class _Through:
    """See `Program`. What comes before the host itself speaks is dropped; if it never does, this says why."""

    def __init__(self, program: Program, mark: str, to: Destination, gateway: str) -> None:
        self._program, self._mark, self._to, self._gateway = program, f"{mark}\n".encode(), to, gateway
        self._reached = False
        self._out, self._err = bytearray(), bytearray()
        self.wait, self.ring, self.give = program.wait, program.ring, program.give
        self.broken, self.status = program.broken, program.status
        self.hang_up, self.end = program.hang_up, program.end

    def take(self) -> tuple[bytes, bytes]:
        out, err = self._program.take()
        if self._reached:
            return out, err
        self._out += out
        self._err += err
        _, mark, rest = self._out.partition(self._mark)
        if mark:
            self._reached = True
            return bytes(rest), b""
        if self._program.finished():
            raise self._unreached()
        del self._out[: -len(self._mark)], self._err[:-MOST_BEFORE]
        return b"", b""

    def finished(self) -> bool:
        return self._reached and self._program.finished()

    def _unreached(self) -> CannotReach:
        """Why `ssh` on the gateway did not reach the host, by its own words."""
        if self._program.broken():
            return lost(self._to, "the login on its gateway")
        said = self._err.decode("utf-8", "replace").strip()
        last = said.splitlines()[-1] if said else "ssh there says nothing"
        if self._program.status(1.0) == NO_SSH:
            return ssh_errors.jump_failed(self._gateway, cannot("no ssh there", last))
        if "Host key verification failed" in said or "Permission denied" in last:
            kind = UnreachedKind.AUTH if "Permission denied" in last else UnreachedKind.KEY_UNKNOWN
            return ssh_errors.ssh_refused(self._to, kind, f"{self._gateway}: {last}")
        return ssh_errors.tunnel_refused(self._to, self._gateway, 2, last, DEFAULT_CONNECT_TIMEOUT)
