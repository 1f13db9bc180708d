"""The transport of a run inside a job: a rank of each host builds the script itself, from its question."""

import math
from collections.abc import Iterator, Mapping

import msgspec

from doctor.exam.in_job.hub import Hub
from doctor.exam.in_job.relayed_program import RelayedProgram
from doctor.model import UnreachedKind
from doctor.transport import Script, Session
from doctor.transport.errors import CannotReach
from doctor.transport.local import LocalTransport
from doctor.transport.program import Program
from doctor.transport.question import Question
from doctor.transport.threads import Outcome, Turn


class JobTransport(LocalTransport):
    """See `Transport`. `places` says which ranks are on a host; one without any rank never came."""

    name = "in-job"

    def __init__(self, hub: Hub, places: Mapping[str, tuple[str, str]], absent: Mapping[str, str]) -> None:
        super().__init__()
        self._warnings += hub.doubts(places)
        self._hub = hub
        self._places = places
        self._absent = absent

    def run(
        self, scripts: Mapping[str, Script], timeout: float, until: float = math.inf
    ) -> Iterator[Outcome]:
        return super().run(self._with_questions(scripts), timeout, until)

    def open(self, scripts: Mapping[str, Script], until: float = math.inf) -> Session:
        return super().open(self._with_questions(scripts), until)

    def _with_questions(self, scripts: Mapping[str, Script]) -> dict[str, Script]:
        here = self._hub.own_place
        return {
            host: script
            if self._places.get(host) == here
            else Script(msgspec.json.encode(script.question).decode(), b"", script.last_line)
            for host, script in scripts.items()
        }

    def descriptors_of(self, host: str) -> int:
        return super().descriptors_of(host) if self._places.get(host) == self._hub.own_place else 0

    def program(self, host: str, command: str, turn: Turn) -> Program:
        turn.begin()
        if host not in self._places:
            raise CannotReach(UnreachedKind.RANK, self._absent[host], "")
        leader = self._hub.leader(self._places[host])
        if leader is None:
            raise CannotReach(UnreachedKind.LOST, "none of its ranks answers", "")
        if leader.link is None:
            return super().program(host, command, turn)
        begun = RelayedProgram(leader.link, msgspec.json.decode(command, type=Question), self._hub.programs)
        if leader.link.closed:
            begun.cut()
        self._stops[host].append(begun.stop)
        return begun
