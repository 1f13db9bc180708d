"""Whether a job went on after a complaint. Progress is no alibi: a step clears only its own writer, and only
if it was made after the complaint.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from doctor.logs.judge.clocks import TOGETHER, Clocks
from doctor.logs.judge.event import LAST_WORDS, Event, explains, is_raised
from doctor.logs.judge.kinds import SuspectKind
from doctor.logs.judge.parties import Key
from doctor.logs.model import Curve, Form, LogFile, LogLine, Party, Role, Sighting
from doctor.logs.steps import says_finished

HELD_BACK = 8192
"""The most characters that print() held back, which Python writes when it ends, after its last exception."""
WRITERS = 4
"""HELD_BACK is multiplied by this if another rank may have written the step."""
_USUAL = 100
"""Characters of a line of a log."""
_BAR = re.compile(r"\d{1,12}/\d{1,12} \[")
_SIGNAL = re.compile(r"\b(?:Killed|Aborted|Terminated|Bus error|Segmentation fault|Local abort)\b")
_OVER = {
    "kubernetes-no-room": "kubernetes-placed",
    "kubernetes-image": "kubernetes-started",
    "kubernetes-volume": "kubernetes-started",
    "ray-terminated": "ray-shut-down",
    "nccl-connect-retrying": "nccl-ready",
    "nccl-ofi-setup": "nccl-ready",
}
"""Symptoms, and what a file says, above or below, if they are over or were wanted: kubectl does not list
events in their order, so only what one rank said is compared by its place."""
_LAUNCHERS = {Form.ELASTIC, Form.MPI, Form.SLURM}
_FORGIVEN = {
    SuspectKind.WAITS,
    SuspectKind.CLOSED,
    SuspectKind.AFTER,
    SuspectKind.LINK,
    SuspectKind.ABSENT,
    SuspectKind.CONFIRMS,
}


AFTER_END = 20
"""Lines that a launcher or a shell may write after the end of a program."""
Steps = Mapping[int | None, Sequence[LogLine]]
"""The lines that state a step, of each rank; of those without one, under None."""


class Recovery:
    """What the steps of a job prove about its complaints. If nothing else complains, any rank's step does."""

    def __init__(
        self,
        events: Sequence[Event],
        files: Mapping[str, LogFile],
        steps: Steps,
        clocks: Clocks,
        curves: Sequence[Curve] = (),
    ) -> None:
        self._curves = curves
        self._ended = any(each.kind in (SuspectKind.DIED, SuspectKind.LEFT) for each in events)
        self._files, self._steps, self._clocks = files, steps, clocks
        self._busy = frozenset(each.line.file for each in events if not each.sighting.symptom.needs)
        raised = {name for name, file in files.items() if any(line.final for line in file.odd)}
        self._ended_badly = self._busy | raised
        self._every = [line for lines in steps.values() for line in lines]

    def weighed(self, event: Event) -> Event:
        """The event, marked if its rank or its job went on after it."""
        file = self._files.get(event.line.file)
        if (
            _overcome(event, file, self._clocks, self._steps)
            or _healthy_end(event, file, self._ended_badly)
            or self._calmed(event, file)
            or self._printed_on(event, file)
        ):
            return replace(event, overcome=True)
        over = event.kind is SuspectKind.ROOT and not self._ended and _is_over(event.sighting.last, file)
        return replace(event, overcome=True, doubted=True) if over else event

    def _printed_on(self, event: Event, file: LogFile | None) -> bool:
        """Whether its only writer printed losses before and after it, so that Python held none back."""
        number = event.sighting.last.number
        return (
            event.kind is not SuspectKind.DIED
            and not _several(file)
            and any(
                each.file == event.line.file and each.lines[0] < number < each.lines[-1]
                for each in self._curves
                if each.lines and number * _USUAL < HELD_BACK
            )
        )

    def clears(self, party: Party, line: LogLine) -> bool:
        """Whether steps prove that a line that no symptom knows ended nobody."""
        file = self._files.get(line.file)
        if _overcome_odd(party, line, file, self._steps):
            return True
        return not self._busy and any(_calms(line, step, self._clocks) for step in self._every)

    def _calmed(self, event: Event, file: LogFile | None) -> bool:
        if self._busy or not self._every or _lasts(event.sighting):
            return False
        last = event.sighting.last
        return _retries(event, file) or any(_later(last, step, self._clocks) for step in self._every)


def _is_over(line: LogLine, file: LogFile | None) -> bool:
    """Whether the last line of the file says that the training is over."""
    last = file.last if file is not None and file.who.rank is None and not _several(file) else None
    calm = last is not None and last.form not in _LAUNCHERS and not last.level.startswith(("E", "F"))
    return calm and last is not None and last.number > line.number and says_finished(last.text)


def got_over(event: Event, sightings: Iterable[Sighting]) -> bool:
    """Whether an event about the same pod, or a later line of the same rank, shows that it went on."""
    later = _OVER.get(event.id)
    pod = event.sighting.taken.get("pod")
    return later is not None and any(
        each.symptom.id == later
        and each.last.file == event.line.file
        and pod in (None, each.taken.get("pod"))
        and (later != "nccl-ready" or _follows(each, event.sighting))
        for each in sightings
    )


def _follows(one: Sighting, other: Sighting) -> bool:
    return one.last.who == other.last.who and one.last.number > other.last.number


def differing(found: Sequence[Event]) -> list[Event]:
    """The events without those that count only if ranks differ, and do not: their line gives a value, and
    that of another rank gives none."""
    usual: dict[str, set[Key]] = {}
    for each in found:
        if not each.sighting.taken:
            usual.setdefault(each.id, set()).update(each.keys)
    return [
        each
        for each in found
        if each.sighting.symptom.needs != "differs"
        or (each.sighting.taken and usual.get(each.id, set()) - each.keys)
    ]


def _lasts(sighting: Sighting) -> bool:
    """Whether the line states what is so from then on, such as a slower network: steps do not refute it."""
    return sighting.symptom.needs == "effect"


def lacks_effect(event: Event, found: Iterable[Event]) -> bool:
    """Whether healthy logs show the symptom too, and nothing that it explains happened."""
    return _lasts(event.sighting) and not any(explains(event, each) for each in found)


def survived(events: Iterable[Event]) -> tuple[Event, ...]:
    """Those that may end a rank, and after which it went on."""
    return tuple(each for each in events if each.overcome and not forgiven(each))


def forgiven(event: Event) -> bool:
    return event.overcome and (event.kind in _FORGIVEN or bool(event.sighting.symptom.needs))


def _overcome(event: Event, file: LogFile | None, clocks: Clocks, steps: Steps) -> bool:
    """Whether a later step proves that the writer of the line went on. Nobody goes on after a signal."""
    sighting, rank = event.sighting, event.by.rank
    line, needs = sighting.last, bool(sighting.symptom.needs)
    if (event.kind is SuspectKind.DIED and not needs) or _lasts(sighting):
        return False
    return any(
        (step.number > line.number if needs else _proves(line, step, rank, file))
        if step.file == line.file
        else (rank is not None or needs) and _went_on(sighting, step, clocks)
        for step in _steps_of(rank, line.file, steps)
    )


def _proves(line: LogLine, step: LogLine, rank: int | None, file: LogFile | None) -> bool:
    """Whether a step further down in the file proves that the writer of the line went on. It does not if
    another rank may have written the step, or if Python may have held it back until its end.
    """
    below = step.number - line.number
    same = (rank is not None and step.who.rank == rank) or not (_several(file) or _differ(line.who, step.who))
    bar = _BAR.search(step.text) is not None
    if same and below > 0 and not _ends_it(line):
        return True  # a warning ends nobody
    if same and step.since > line.number and (step.level or bar):
        return True  # logging and progress bars are not held back
    return below * len(step.text) > HELD_BACK * (1 if same else WRITERS) and not bar


def _differ(one: Party, other: Party) -> bool:
    pairs = ((one.host, other.host), (one.device, other.device), (one.pid, other.pid))
    return any(a is not None and b is not None and a != b for a, b in pairs)


def _several(file: LogFile | None) -> bool:
    """Whether a file may have several writers that its lines do not tell apart."""
    if file is None or file.who.rank is not None:
        return file is None
    return len(file.ranks) > 1 or (file.world or 0) > 1 or not _LAUNCHERS.isdisjoint(file.forms)


def _steps_of(rank: int | None, file: str, steps: Steps) -> list[LogLine]:
    """The steps of a rank. If the rank of a line is unknown, all steps of its file count."""
    own = [*steps.get(rank, ())]
    if rank is None:
        return own + [line for lines in steps.values() for line in lines if line.file == file]
    return own + [line for line in steps.get(None, ()) if line.file == file]


def _healthy_end(event: Event, file: LogFile | None, ended_badly: frozenset[str]) -> bool:
    """Whether healthy logs have such a warning, too, and its file goes on without another complaint."""
    needs, last = event.sighting.symptom.needs, event.sighting.last
    if (
        needs in ("", "no-step", "effect", "differs")
        or file is None
        or file.name in ended_badly
        or is_raised(last)
    ):
        return False
    return file.lines - last.number > AFTER_END


def _retries(event: Event, file: LogFile | None) -> bool:
    """Whether a job that makes steps has recovered from the event, whichever file it is in. It has not if
    this file has steps and ends with the event.
    """
    if file is not None and file.progress and file.lines - event.sighting.last.number <= LAST_WORDS:
        return False
    return event.sighting.symptom.role is Role.CONSEQUENCE and bool(event.sighting.symptom.needs)


def _later(line: LogLine, step: LogLine, clocks: Clocks) -> bool:
    """Whether a step came after the line. Used if nothing else complains: then any rank and clock will do."""
    if step.file == line.file:
        return step.number > line.number
    apart = clocks.apart(line, step)
    if apart is None and step.at is not None and line.at is not None and step.zoned is line.zoned:
        apart = step.at - line.at
    return apart is not None and apart > TOGETHER


def _overcome_odd(party: Party, line: LogLine, file: LogFile | None, steps: Steps) -> bool:
    """Whether the rank went on after the line."""
    later = [each for each in _steps_of(party.rank, line.file, steps) if each.file == line.file]
    if _ends_it(line):
        return any(_proves(line, step, party.rank, file) for step in later)
    return any(step.number > line.number for step in later)


def _calms(line: LogLine, step: LogLine, clocks: Clocks) -> bool:
    """Whether a step shows that the job went on after its only complaint."""
    return _later(line, step, clocks) and not (_ends_it(line) and step.file == line.file)


def _ends_it(line: LogLine) -> bool:
    """Whether the writer of such a line usually ends: it is an exception, or reports a signal."""
    return line.form is Form.PYTHON or _SIGNAL.search(line.text) is not None


def _went_on(sighting: Sighting, step: LogLine, clocks: Clocks) -> bool:
    """Whether a step in another file came later. Without times, this is assumed if healthy logs have the
    symptom too.
    """
    if step.at is None or sighting.last.at is None:
        return bool(sighting.symptom.needs)
    return clocks.before(sighting.last, step)
