"""As live/on_rank, for the agent of `doctor slow`."""

from typing import Any

import msgspec

from doctor.exam.in_job.own_programs import Makers
from doctor.exam.request import Request
from doctor.live.evidence import Count
from doctor.live.on_rank import COMMANDS, Pids, Seconds, own_agent
from doctor.slow.agents import slow_script
from doctor.slow.devices import SCRIPTS
from doctor.slow.options import SlowWishes

_NUMBERS: dict[str, Any] = {"number": Count, "parts": Count, "seconds": Seconds, "within": Seconds}
_WHOSE = {"stacks": Pids, "record": Pids, "gil": Pids, "pids": (Pids | None, None)}
_OFTEN = {"ping": {"number": Count}, "sample": {"first": bool, "devices": list, **_NUMBERS, **_WHOSE}}


def own_sampler(request: Request, wishes: SlowWishes) -> Makers:
    own = {"devices": msgspec.to_builtins(SCRIPTS)}
    return own_agent(request, wishes, slow_script, {**COMMANDS, **_OFTEN}, own)
