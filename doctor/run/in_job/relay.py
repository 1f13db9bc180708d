"""The transport of a run inside a job: programs on a host are run there by one of its ranks."""

from __future__ import annotations

from collections.abc import Mapping

from doctor.model import UnreachedKind
from doctor.run.in_job.hub import Hub
from doctor.run.in_job.relayed_program import RelayedProgram
from doctor.transport import errors
from doctor.transport.local import LocalProgram, start_program
from doctor.transport.program import OUTPUT_CAP, Program
from doctor.transport.threads import ThreadedTransport, Turn


class JobTransport(ThreadedTransport):
    """See `Transport`. `places` says which ranks are on a host; a host without any has never come."""

    name = "in-job"

    def __init__(self, hub: Hub, places: Mapping[str, tuple[str, str]], absent: Mapping[str, str]) -> None:
        super().__init__(OUTPUT_CAP)
        self._hub = hub
        self._places = places
        self._absent = absent
        self._programs: dict[str, list[LocalProgram | RelayedProgram]] = {}

    def program(self, host: str, command: str, turn: Turn) -> Program:
        turn.begin()
        if host not in self._places:
            raise errors.CannotReach(UnreachedKind.RANK, self._absent[host], "")
        leader = self._hub.leader(self._places[host])
        if leader is None:
            raise errors.CannotReach(UnreachedKind.LOST, "none of its ranks answers", "")
        begun: LocalProgram | RelayedProgram
        if leader.link is None:
            begun = start_program(command)
        else:
            begun = RelayedProgram(leader.link, command)
            self._hub.programs[begun.number] = begun
            if leader.link.closed:
                begun.cut()
        self._programs.setdefault(host, []).append(begun)
        return begun

    def give_up(self, host: str) -> str:
        for program in self._programs.get(host, []):
            program.stop()
        return "it ran"

    def close(self) -> None:
        for host in list(self._programs):
            self.give_up(host)
