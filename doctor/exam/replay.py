"""The request of a replay: what the recorded run was asked to judge, unless it is typed anew."""

from dataclasses import replace

from doctor.exam.request import Request
from doctor.exam.way import retyped
from doctor.recording import Recording

EXAMINES = ("check", "smoke", "preflight", "accept")
"""The commands whose options choose checks; others choose theirs by themselves."""
CHOICE = ("--only", "--skip")
STRICTNESS = ("--strict", "--need-hosts")


def as_recorded(request: Request, recorded: Recording) -> Request:
    """With the recorded options that its verdict depends on; checks or an exam that are named stay."""
    if not {request.command, recorded.command} <= {*EXAMINES} or recorded.way is None:
        return request
    wanted = STRICTNESS if request.typed & {"--exam", *CHOICE} else (*CHOICE, *STRICTNESS)
    given = [option for option in recorded.way.asked if option[0] in wanted]
    typed = request.typed | {option[0] for option in given}
    return replace(retyped(request, given), typed=typed)
