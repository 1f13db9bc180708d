"""Sentences about what the logs could not show, and what would show it."""

import re
from collections.abc import Iterator, Sequence

from doctor.logs.judge.blame import LogBlame
from doctor.logs.judge.case import LogCase
from doctor.logs.judge.event import Event
from doctor.logs.judge.kinds import SuspectKind, signal_of
from doctor.logs.judge.lag import fell_silent
from doctor.logs.judge.recovery import survived
from doctor.logs.judge.words import MOST, who
from doctor.logs.model import Form, Party, Role
from doctor.model import Confidence
from doctor.text.ranks import ranks_text

FEW = 5
_SHELL_KILL = re.compile(r"\bkilled\b|已杀死", re.IGNORECASE)
"""How a shell says that a program of it was killed."""


def openings(case: LogCase, blames: Sequence[LogBlame]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(_openings(case, blames)))


def _openings(case: LogCase, blames: Sequence[LogBlame]) -> Iterator[str]:
    if not blames and (silent := fell_silent(case.logs.curves)):
        yield silent
    sure = bool(blames) and blames[0].confidence is Confidence.CERTAIN
    if case.missing and not sure and (case.events or case.odd):
        named = {each.rank for blame in blames for each in blame.who}
        missing = [rank for rank in case.missing if rank not in named]
        files = case.logs.files  # a launcher shows what its ranks write, though not which of them
        shown = len(files) == 1 and files[0].world and any(s.who.rank is None for s in files[0].progress)
        if missing and not shown:
            yield _no_log(missing, case)
    confirms = bool(blames) and all(each.kind is SuspectKind.CONFIRMS for each in blames[0].events)
    if blames and blames[0].role is Role.CONSEQUENCE and not (case.interrupted or confirms):
        yield from _first_cause(case)
    by_shell = not blames and any(_SHELL_KILL.search(line.text) for _, line in case.odd)
    dead = [party for blame in blames if not sure for party in _perhaps_for_memory(blame)]
    if (dead or by_shell) and not any(Form.KERNEL in file.forms for file in case.logs.files):
        where = ", ".join(sorted({each.host for each in dead if each.host})[:MOST]) or "its host"
        yield f"the kernel's log of {where} was not given: it would show whether memory ran out"
    if gone_by := (*case.overcome, *(survived(case.events) if not blames else ())):
        number = sum(each.sighting.count for each in gone_by)
        yield (
            f"{number} {'lines complain' if number > 1 else 'line complains'}, "
            "and the job went on after that: left out"
        )
    if foreign := dict.fromkeys(
        s.symptom.title for s in case.logs.sightings if s.symptom.family == "foreign"
    ):
        yield f"{' and '.join(foreign)}: left out"
    if case.aside:
        names = sorted({name for each in case.aside if (name := each.sighting.taken.get("process"))})
        of = f" ({', '.join(names[:FEW])})" if names else ""
        yield f"the kernel also reports crashes of other programs or earlier runs{of}: left out"
    if apart := _unconnected(case, _compared(blames)):
        yield f"nothing connects the clocks of {', '.join(apart[:MOST])}: their times were not compared"
    for file in case.logs.files[:FEW]:
        if file.problem:
            yield f"{file.name} was not read to its end: {file.problem}"
        elif not any(each.lines for each in case.logs.files):
            yield f"{file.name} holds no text"


def _no_log(missing: list[int], case: LogCase) -> str:
    one = len(missing) == 1
    parties = [case.places.settled(Party(rank=rank), None) for rank in missing]
    said = f"no log of {who(parties)} was given"
    if case.waiting:
        return f"{said}: {'the one' if one else 'whichever of them'} without a time-out is the one to look at"
    return f"{said}: {'that one' if one else 'they'} may have ended first"


def _first_cause(case: LogCase) -> Iterator[str]:
    peers = [each for event in case.of(SuspectKind.CLOSED, SuspectKind.WAITS) for each in event.peers]
    if peers and not case.missing:
        yield f"what came first is not in these logs: look at {who(dict.fromkeys(peers))}"
    elif not case.missing:
        ranks = case.left_alone
        of = f"ranks that {ranks_text(ranks, most=MOST)} worked with" if ranks else "other ranks"
        yield f"what came first is not in these logs: the logs of the {of} would show it"


def _perhaps_for_memory(blame: LogBlame) -> Iterator[Party]:
    """Parties that the kernel may have killed for lack of memory."""
    if not blame.nameless:
        for event in blame.events:
            if event.kind is SuspectKind.DIED and signal_of(event.sighting) == 9:
                yield from event.who or (event.by,)
    elif "memory-low" in blame.checks:
        yield from blame.who


def _compared(blames: Sequence[LogBlame]) -> list[Event]:
    """Events whose order matters: those of several causes, or the waits of a single uncertain one."""
    if len(blames) > 1:
        return [event for blame in blames for event in blame.events]
    unsure = (blame for blame in blames if blame.confidence is Confidence.SUSPECT)
    return [event for blame in unsure for event in blame.events if event.kind is SuspectKind.WAITS]


def _unconnected(case: LogCase, events: Sequence[Event]) -> list[str]:
    lines = (each.line for each in events if each.line.at is not None)
    alone = {case.clocks.of(line)[0] for line in lines if case.clocks.at(line) is None}
    return sorted(each.removeprefix("file ") for each in alone)
