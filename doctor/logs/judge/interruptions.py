"""Jobs that somebody ended with Ctrl-C: if they hung, the tracebacks show whom the ranks waited for."""

from collections import defaultdict
from itertools import pairwise
from statistics import median

from doctor.logs.judge.blame import LogBlame
from doctor.logs.judge.case import INTERRUPTED, LogCase
from doctor.logs.judge.event import Event
from doctor.logs.judge.kinds import SuspectKind, signal_of
from doctor.logs.judge.words import who
from doctor.logs.model import Party, Role
from doctor.model import Confidence

_TOLD = "torchrun-told-to-end"
_ENDED = "somebody ended the job with Ctrl-C"
_OTHER_WAYS = (SuspectKind.WAITS, SuspectKind.ABSENT, SuspectKind.LINK)
PAUSES = 3
"""A job that logged a step within this number of usual step times before its end did not hang."""


def interrupted(case: LogCase) -> LogBlame | None:
    """The blame, if nothing earlier explains the end. Effects of Ctrl-C (lost connections) do not count."""
    stacks = [each for each in case.events if each.id == INTERRUPTED]
    told = [each for each in case.events if each.id == _TOLD and _by_ctrl_c(each)]
    events = (*stacks, *told)
    if not events or case.of(*_OTHER_WAYS):
        return None
    at: dict[str, list[Party]] = defaultdict(list)
    inside: dict[str, list[Party]] = defaultdict(list)
    outside: list[Party] = []
    for each in stacks:
        taken = each.sighting.taken
        at[taken.get("place", "")] += each.who
        if waits := taken.get("waits"):
            inside[waits] += each.who
        else:
            outside += each.who
    how = [f"{who(parties)}: {place}" for place, parties in list(at.items())[:4] if place]
    waiting = [party for parties in inside.values() for party in parties]
    if not 0 < len(outside) < max(2, len(waiting)) or not waiting or _ran(case, told):
        if waiting and not outside:
            how.append("every rank that left a traceback waited for others")
        return LogBlame(_ENDED, (), events, Confidence.STRONG, tuple(how), role=Role.CONSEQUENCE)
    waits = ", ".join(f"{who(parties)} in {name}" for name, parties in inside.items())
    says = (
        f"{who(outside)} {'were' if len(outside) > 1 else 'was'} elsewhere while others waited ({waits}), "
        "when somebody ended the job with Ctrl-C"
    )
    how.append("if the job hung, they waited for those that did not come; without times this is unknown")
    return LogBlame(
        says, tuple(dict.fromkeys(outside)), events, Confidence.SUSPECT, tuple(how), nameless=True,
        checks=("stuck-process",), brief="did not join before Ctrl-C",
    )  # fmt: skip


def _by_ctrl_c(event: Event) -> bool:
    said = f"{event.sighting.first.text} {event.sighting.last.text}"
    return signal_of(event.sighting) == 2 or any(
        each in said for each in ("Received 2 death", "SIGINT death", "got signal: 2", "received SIGINT")
    )


def _ran(case: LogCase, told: list[Event]) -> bool:
    """Whether the job logged a step shortly before its end, by the times of its own log."""
    ends = {each.line.file: each.line.at for each in told if each.line.at is not None}
    for curve in case.logs.curves:
        seconds = [each for each in curve.seconds if each is not None]
        if (end := ends.get(curve.file)) is None or len(seconds) < 3:
            continue
        pause = median(after - before for before, after in pairwise(seconds))
        if end - seconds[-1] <= PAUSES * max(pause, 1.0):
            return True
    return False
