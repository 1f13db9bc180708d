"""The transport of a run inside a job: programs on a host are run there by one of its ranks."""

from __future__ import annotations

from collections.abc import Mapping

from doctor.model import UnreachedKind
from doctor.run.in_job.hub import Hub
from doctor.run.in_job.relayed_program import RelayedProgram
from doctor.transport.errors import CannotReach
from doctor.transport.local import LocalTransport
from doctor.transport.program import Program
from doctor.transport.threads import Turn


class JobTransport(LocalTransport):
    """See `Transport`. Programs run here on rank 0's own host, and by relay on the others.

    `places` says which ranks are on a host; a host without any has never come.
    """

    name = "in-job"

    def __init__(self, hub: Hub, places: Mapping[str, tuple[str, str]], absent: Mapping[str, str]) -> None:
        super().__init__()
        self._hub = hub
        self._places = places
        self._absent = absent

    def program(self, host: str, command: str, turn: Turn) -> Program:
        turn.begin()
        if host not in self._places:
            raise CannotReach(UnreachedKind.RANK, self._absent[host], "")
        leader = self._hub.leader(self._places[host])
        if leader is None:
            raise CannotReach(UnreachedKind.LOST, "none of its ranks answers", "")
        if leader.link is None:
            return super().program(host, command, turn)
        begun = RelayedProgram(leader.link, command)
        self._hub.programs[begun.number] = begun
        if leader.link.closed:
            begun.cut()
        self._stops[host].append(begun.stop)
        return begun
