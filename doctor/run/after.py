"""After the command has ended badly: why, found out in a process of its own."""

from __future__ import annotations

import re
import signal
from collections.abc import Mapping, Sequence
from functools import partial

from doctor.exam.request import Request
from doctor.logs.steps import says_step
from doctor.run.apart import StoppedPart, apart
from doctor.run.folder import both_ends
from doctor.run.output import Output
from doctor.run.reason import EndReason, LossLook, PastCommand
from doctor.text.announce import announce

LOST_A_RANK = re.compile(
    rb"ChildFailedError|noticed that process rank|processes exited with non-zero status|srun: error: "
)
"""What launchers print at their end if they lost a rank: torchrun, mpirun and srun."""


def explained(request: Request, output: Output, past: PastCommand) -> EndReason:
    """Why the command ended. A signal that ends doctor ends the questions to the hosts; what the command
    printed is read all the same.
    """
    try:
        return apart(partial(_reason, request, output, past))
    except StoppedPart as stop:
        name = signal.Signals(stop.number).name
        announce(f"{name} came while the end was being explained: only what was printed here is explained.")
        return apart(partial(_reason, request, output))


def printed_cause(request: Request, output: Output, *, lost: bool = False) -> EndReason | None:
    """The cause of the end that these words alone show; None if they do not show that it failed by itself.
    `lost`: it did for sure.
    """
    reason = apart(partial(read_cause, request, output))
    return reason if reason and (reason.failed or lost) else None


def read_cause(request: Request, output: Output) -> EndReason | None:
    """The cause that these words name, also if they only make it possible; in this process."""
    reason = _reason(request, output)
    return reason if reason.named else None


def _reason(request: Request, output: Output, past: PastCommand | None = None) -> EndReason:
    from doctor.run.why import reason_of

    return reason_of(request, output, past)


def curves_of(
    request: Request, output: Output, told: Sequence[str], since: Mapping[str, int] | None = None
) -> LossLook:
    """In this process."""
    from doctor.run.why import losses_of

    return losses_of(request, output, told, since)


def lost_a_rank(output: Output) -> bool:
    """Whether a launcher says that it lost a rank, and the training does not go on below that."""
    ends = (LOST_A_RANK.split(both_ends(stream))[1:] for stream in output.streams.values())
    return any(end and not any(map(says_step, _lines(end[-1]))) for end in ends)


def _lines(text: bytes) -> list[str]:
    return text.decode(errors="replace").splitlines()
