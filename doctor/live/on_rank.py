"""The agent that a rank of another host runs for rank 0, inside a job: what rank 0 may tell it."""

import os
from collections.abc import Callable, Mapping
from functools import cache
from typing import Annotated, Any, Union

import msgspec

from doctor.exam.in_job.own_programs import Makers, OwnProgram, RequestRefusal
from doctor.exam.request import Request
from doctor.job.launch.brief import brief
from doctor.live import pyspy
from doctor.live.agents import MOST_ENDS, look_script
from doctor.live.evidence import Pid
from doctor.live.options import RunningJobWishes
from doctor.text.nodeset import is_host
from doctor.transport import Script
from doctor.transport.question import LookQuestion

Seconds = Annotated[float, msgspec.Meta(ge=0, le=86_400)]
Pids = Annotated[list[Pid], msgspec.Meta(max_length=20_000)]
Names = Annotated[list[str], msgspec.Meta(max_length=64)]
Address = Annotated[str, msgspec.Meta(max_length=100)]
Ends = Annotated[list[tuple[Address, Address]], msgspec.Meta(max_length=MOST_ENDS)]

COMMANDS: Mapping[str, Mapping[str, Any]] = {
    "find": {"lease": Seconds, "beat": Seconds, "within": Seconds, "launchers": dict[str, Any]},
    "tool": {"data": str, "last": (bool, False)},
    "look": {"apart": Seconds, "within": Seconds, "pids": (Pids | None, None), "names": (Names, [])},
    "ends": {"ends": Ends},
    "beat": {},
    "stop": {},
}
"""What the agent of `doctor hang` is told, except by `doctor run`; in a pair, a default follows the type."""


def own_agent(
    request: Request,
    wishes: RunningJobWishes,
    script: Callable[..., Script] = look_script,
    commands: Mapping[str, Mapping[str, Any]] = COMMANDS,
    own: Mapping[str, Any] | None = None,
) -> Makers:
    """`script` starts the agent of this rank's command. `own`: what a field of its commands must be."""
    given = {"launchers": brief(), **(own or {})}
    kinds = tuple(_command(name, of) for name, of in commands.items())
    decoder: msgspec.json.Decoder[Any] = msgspec.json.Decoder(Union[kinds])  # noqa: UP007

    @cache
    def tool() -> frozenset[bytes]:
        return frozenset(pyspy.for_host(os.uname().machine, wishes.pyspy)[0])

    def admit(line: bytes) -> bytes:
        told = decoder.decode(line)
        if hasattr(told, "data") and line not in tool():
            raise RequestRefusal(
                "rank 0 sent a py-spy that this rank lacks: give every rank the same --pyspy"
            )
        strange = any(getattr(told, name, value) != value for name, value in given.items())
        if strange or not all(map(is_host, getattr(told, "names", ()))):
            raise RequestRefusal("rank 0 asked a question that a rank does not answer")
        return msgspec.json.encode(told)

    def make(_: LookQuestion) -> OwnProgram:
        return OwnProgram(script(request.smoke.python, sudo=request.way.sudo), admit)

    return {LookQuestion: make}


def _command(name: str, of: Mapping[str, Any]) -> type:
    fields = [(key, *(kind if isinstance(kind, tuple) else (kind,))) for key, kind in of.items()]
    how: dict[str, Any] = {"forbid_unknown_fields": True, "omit_defaults": True, "kw_only": True}
    return msgspec.defstruct(name, fields, tag_field="do", tag=name, **how)
