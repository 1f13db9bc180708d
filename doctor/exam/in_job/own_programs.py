"""The programs that a rank runs on its host for rank 0, built by the rank itself: rank 0 names no command.

A process in rank 0's place can ask what doctor asks, with this installation's own checks and the options and
variables that this rank was given. It cannot name a program, a file to read, a variable, or a fault.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import msgspec

from doctor.api import Ask, Fact
from doctor.errors import DoctorError
from doctor.exam.in_job.messages import UNREADABLE
from doctor.exam.request import Request
from doctor.facts.memory import FULL
from doctor.job.launch.common import common_env
from doctor.job.launch.files import read_launch_files
from doctor.job.launch.table_reference import VARIABLES as TABLE_VARIABLES
from doctor.judge.examine import facts_of
from doctor.judge.fact_values import ASKED
from doctor.judge.registry import find_checks
from doctor.mesh.run import mesh_script
from doctor.probe import TOKEN, script
from doctor.smoke.agents import smoke_script
from doctor.smoke.messages import COMMANDS, JoinCommand, StartCommand
from doctor.text.nodeset import is_host, is_ip
from doctor.transport import Script
from doctor.transport.question import MeshQuestion, ProbeQuestion, Question, SmokeQuestion

_NUMBER, _SECONDS = rb"\d{1,9}", rb"\d{1,9}(?:\.\d{1,9})?"
_MESH = re.compile(
    rb"beat|stop"
    rb"|hello [0-9a-f]{1,64} %(n)s %(s)s"
    rb"|listen %(n)s %(n)s %(a)s"
    rb"|connect %(n)s %(s)s %(s)s %(n)s %(n)s %(n)s %(a)s %(n)s"
    % {b"n": _NUMBER, b"s": _SECONDS, b"a": rb"[0-9A-Fa-f:.]{2,45}(?:%[\w.-]{1,15})?"}
)
"""Commands of doctor/mesh/agent.py. Where bash reads one, it would evaluate more than a number."""


class RequestRefusal(Exception):
    """Rank 0 may not ask this; the text says why."""


@dataclass(frozen=True, slots=True)
class OwnProgram:
    """`admit` turns each line from rank 0 into the line for the program's stdin, or raises RequestRefusal."""

    script: Script
    admit: Callable[[bytes], bytes]


Makers = Mapping[type, Callable[[Any], OwnProgram]]
"""How the program is made that answers a kind of question."""


class OwnPrograms:
    """`env` are the variables of this rank that matter to a job, `more` what only its command is asked."""

    def __init__(self, request: Request, env: Mapping[str, str], more: Makers) -> None:
        self._request = request
        self._variables = env
        self._makers: Makers = {
            ProbeQuestion: lambda question: OwnProgram(self._probe(question), nothing),
            MeshQuestion: lambda _: OwnProgram(mesh_script(request.smoke.python), _mesh),
            SmokeQuestion: lambda _: OwnProgram(smoke_script(request.smoke.python), self._smoke),
            **more,
        }

    def make(self, question: Question) -> OwnProgram:
        """The program. Raises RequestRefusal, or DoctorError if this host lacks something that rank 0 has."""
        if type(question) not in self._makers:
            raise RequestRefusal("rank 0 runs another command than this rank")
        return self._makers[type(question)](question)

    @cached_property
    def _facts(self) -> dict[str, Fact[Any]]:
        checks = find_checks(self._request.what.checks).checks
        return {fact.name: fact for fact in (*facts_of(checks), *ASKED, FULL)}

    @cached_property
    def _env(self) -> Mapping[str, str]:
        launch = self._request.job.launch_files
        return {**self._variables, **(common_env(read_launch_files(launch)) if launch else {})}

    def _probe(self, question: ProbeQuestion) -> Script:
        unknown = [name for name in question.facts if name not in self._facts]
        if unknown:
            raise RequestRefusal(
                f"this rank has no check that needs {unknown[0][:40]!r}: give every rank the same --checks"
            )
        if not TOKEN.fullmatch(question.token) or not self._may_ask(question.ask):
            raise RequestRefusal("rank 0 asked a question that a rank does not answer")
        facts = [self._facts[name] for name in question.facts]
        ask = replace(question.ask, python=self._request.smoke.python, pythons=None)
        return script(facts, ask, question.token, sudo=self._request.way.sudo)

    def _may_ask(self, ask: Ask) -> bool:
        return (
            all(map(is_host, (ask.host, *ask.names)))
            and set(ask.tables) <= {self._env.get(name) for name in TABLE_VARIABLES}
            and all(0 <= port < 65536 for port in ask.ports)
            and all(is_ip(address) for _, address in ask.pings)
        )

    def _smoke(self, line: bytes) -> bytes:
        """The line, decoded and encoded again: what we did not understand is not passed on."""
        told = COMMANDS.decode(line)
        if isinstance(told, StartCommand):
            foreign = [name for name, value in told.env.items() if self._env.get(name) != value]
            if foreign:
                raise RequestRefusal(
                    f"rank 0 wants {foreign[0][:40]}={told.env[foreign[0]][:80]}, which this rank lacks"
                )
            if told.python != self._request.smoke.python:
                raise RequestRefusal("rank 0 was given another --python than this rank")
            own = {text.partition("@")[0].strip().lower() for text in self._request.smoke.inject}
            if not {each.kind for each in told.inject} <= own:
                raise RequestRefusal("rank 0 was given another --inject than this rank")
            self._refuse_name(told.head)
        if isinstance(told, StartCommand | JoinCommand):
            self._refuse_name(told.address)
        return msgspec.json.encode(told)

    @staticmethod
    def _refuse_name(address: str) -> None:
        """Refuse anything but an address; an empty one means that the host's address is unknown."""
        if address and not is_ip(address):
            raise RequestRefusal("rank 0 gave no address to meet at")


def nothing(_: bytes) -> bytes:
    """Refuse every line: the probe gets all it needs when it starts."""
    raise RequestRefusal("rank 0 sent more than a question")


def _mesh(line: bytes) -> bytes:
    if not _MESH.fullmatch(line):
        raise RequestRefusal("rank 0 sent the mesh an unknown command")
    return line


NOT_MADE = (RequestRefusal, DoctorError, *UNREADABLE)
"""The errors that `make` and `admit` may raise."""
