"""Whether a job went on after a complaint. Progress is no alibi: a step clears only its own writer, and only
if it was made after the complaint.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from doctor.logs.judge.clocks import TOGETHER, Clocks
from doctor.logs.judge.event import Event, below, explains, is_raised
from doctor.logs.judge.kernel_events import RANKS
from doctor.logs.judge.kinds import SuspectKind
from doctor.logs.judge.parties import Key, apart
from doctor.logs.model import Curve, Form, LogFile, LogLine, Party, Sighting
from doctor.text.hostprogram import table

HELD_BACK = 8192
"""The most characters that print() held back, which Python writes when it ends, after its last exception."""
WRITERS = 4
"""HELD_BACK is multiplied by this if another rank may have written the step."""
_DONE, _BELOW = re.compile(r"(?i)\W*done\W*"), 2
"""What a script says when its program has ended, however that was, and how many lines below a traceback."""
_USUAL = 100
"""Characters of a line of a log."""
NO_SPEED = "?it/s]"  # how a bar ends that has made no step yet
_BAR = re.compile(r"\d{1,12}/\d{1,12} \[")
_TAG = re.compile(r"\[rank\d{1,6}\]: ")
"""torch writes it before an exception that ends a rank, and before nothing else."""
_SIGNAL = re.compile(r"\b(?:Killed|Aborted|Terminated|Bus error|Segmentation fault|Local abort)\b")
_PAIRS, (_, *_ROWS) = table(__file__, "recovery.txt")
_OVER = dict(map(str.split, _PAIRS))
"""Symptoms, and what a file says, above or below, if they are over or were wanted: kubectl does not list
events in their order, so only what one rank said is compared by its place."""
_LATER = " ".join(_ROWS).split()
_LAUNCHERS = {Form.ELASTIC, Form.MPI, Form.SLURM}
_FORGIVEN = frozenset(map(SuspectKind, ["waits", "closed", "after", "link", "absent", "confirms"]))
AFTER_END = 20
"""Lines that a launcher or a shell may write after the end of a program."""
Steps = Mapping[int | None, Sequence[LogLine]]
"""The lines that state a step, of each rank; of those without one, under None."""


class Recovery:
    """What the steps of a job prove about its complaints. Three rules: a later step of the same writer clears
    it; after an exception only one that was surely written later does; if nothing else complains, any
    rank's step does.
    """

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
        self._every = [line for lines in steps.values() for line in lines]
        self._alone = all(each.sighting.symptom.needs for each in events)
        """Whether nothing complains but what healthy logs show, too."""

    def weighed(self, event: Event) -> Event:
        """The event, marked if its rank or its job went on after it."""
        last, harmless = event.sighting.last, bool(event.sighting.symptom.needs)
        died = event.kind is SuspectKind.DIED
        dead = died and not harmless  # nobody goes on after a signal; who is not known may be no rank
        went_on = not dead and self._went_on(
            last, event.by.rank, harmless and not died and not is_raised(last)
        )
        later = any(self._later(last, step) for step in self._every)
        alone = self._alone and (later or self._ends_well(event))
        if (not _lasts(event.sighting) and (went_on or alone)) or (not dead and self._printed_on(last)):
            ours = any(RANKS.match(word.rpartition("/")[2]) for word in last.text.split())
            return replace(event, overcome=True, doubted=died and not went_on and ours)
        may = event.kind in (SuspectKind.ROOT, SuspectKind.AFTER) and not self._ended
        over = self._over(event) or self._all_over(last) if may else None
        sure = harmless or (over is not None and over.form is Form.ELASTIC)
        return replace(event, overcome=True, doubted=not sure) if over else event

    def _printed_on(self, line: LogLine) -> bool:
        """Whether its only writer printed losses before and after it, so that Python held none back."""
        if line.number * _USUAL >= HELD_BACK or self._many(line.file):
            return False
        here = (each.lines for each in self._curves if each.file == line.file)
        return any(lines[0] < line.number < lines[-1] for lines in here)

    def _over(self, event: Event) -> LogLine | None:
        """Where its writer or its torchrun says, later and after its last step, that the training is over. A
        word without a rank may be of a shell: it counts only at the end of a log to which no launcher wrote.
        """
        line = event.sighting.last
        file, tag = self._files[line.file], _TAG.search(line.text)
        output = self._files.get("out".join(line.file.rsplit("err", 1)), file)
        ends = (file.last, output.last)
        alone = file.who.rank is None and _LAUNCHERS.isdisjoint(file.forms)
        for over in (*file.over, *output.over):
            steps = (step.number for step in file.progress if not apart(step.who, over.who))
            here = over.file == line.file
            if over.number <= max((line.number, *steps)) if here else over != output.last:
                continue
            own, said = ((each.rank, each.device) for each in (line.who, over.who))
            by_rank = own == said != (None, None) and (tag is None or tag[0] in over.text)
            if by_rank or (here and over.form is Form.ELASTIC and tag is None):
                return None if line.form in _LAUNCHERS else over  # those tell of ends, and do not complain
            last = any(each and (each.file, each.number) == (over.file, over.number) for each in ends)
            script = is_raised(line) and over.number - line.number <= _BELOW and _DONE.fullmatch(over.text)
            if alone and last and not script and not (_ends_it(line) and own[0] not in (None, said[0])):
                return over
        return None

    def _all_over(self, line: LogLine) -> LogLine | None:
        """Where the last of all ranks in its file says later that it is over, if any may have written it."""
        file = self._files[line.file]
        said = {each.who.rank: each for each in file.over if each.number > line.number}
        ranks = {*range(file.world or 0), *(each.who.rank for each in file.progress)} - {None}
        every = len(said) > 1 and ranks <= said.keys() and line.who.rank is None is file.who.rank
        return max(said.values(), key=lambda each: each.number) if every else None

    def clears(self, party: Party, line: LogLine) -> bool:
        """Whether steps prove that a line that no symptom knows ended nobody."""
        ends = _ends_it(line)
        if self._went_on(line, party.rank, not ends, elsewhere=False):
            return True
        others = (step for step in self._every if not (ends and step.file == line.file))
        if self._fell_silent(line):
            return False
        return self._alone and any(self._later(line, step) for step in others)

    def _fell_silent(self, line: LogLine) -> bool:
        """Whether others in its file made steps after it, but not its writer, who had made some before."""
        steps = [step for step in self._every if step.file == line.file and step.who.host]
        own = [step.number for step in steps if not apart(line.who, step.who)]
        return bool(line.who.host and own) and max(own) < line.number < max(step.number for step in steps)

    def _went_on(self, line: LogLine, rank: int | None, harmless: bool, *, elsewhere: bool = True) -> bool:
        """Whether a later step proves that the writer of the line went on. In another file and without
        times, this is assumed if healthy logs have such a line, too.
        """
        for step in self._steps_of(rank, line.file):
            if step.file == line.file:
                other = line.who.host and apart(line.who, step.who)
                if step.number > line.number and not other and (harmless or self._proves(line, step, rank)):
                    return True
            elif elsewhere and (rank is not None or harmless):
                unknown = step.at is None or line.at is None
                if harmless if unknown else self._clocks.before(line, step):
                    return True
        return False

    def _steps_of(self, rank: int | None, file: str) -> list[LogLine]:
        """The steps of a rank. If the rank of a line is unknown, all steps of its file count."""
        others = self._every if rank is None else self._steps.get(None, ())
        found = [*self._steps.get(rank, ()), *(line for line in others if line.file == file)]
        return [step for step in found if not step.text.endswith(NO_SPEED)]

    def _proves(self, line: LogLine, step: LogLine, rank: int | None) -> bool:
        """Whether the step is by the writer of the line, and Python did not hold it back until its end."""
        bar = _BAR.search(step.text) is not None
        same = rank is not None and step.who.rank == rank
        same = same or not (self._many(line.file) or apart(line.who, step.who))
        same = same or (line.who.rank is None and self._all_went_on(line))
        if same and not _ends_it(line):
            return True  # a warning ends nobody
        if same and step.since > line.number and (step.level or bar):
            return True  # logging and progress bars are not held back
        below = (step.number - line.number) * len(step.text)
        return below > HELD_BACK * (1 if same else WRITERS) and not bar

    def _all_went_on(self, line: LogLine) -> bool:
        """Whether each rank that wrote in its file logged several steps after it, so that its writer did."""
        file = self._files[line.file]
        on = {step.who.rank for step in file.progress if step.since > line.number and step.level}
        return len(on) > 1 and on.issuperset(file.ranks) and (file.world or 0) <= len(on)

    def _many(self, name: str) -> bool:
        """Whether a file may have several writers that its lines do not tell apart."""
        file = self._files[name]
        several = len(file.ranks) > 1 or (file.world or 0) > 1 or not _LAUNCHERS.isdisjoint(file.forms)
        return several and file.who.rank is None

    def _ends_well(self, event: Event) -> bool:
        """Whether its file goes on without an exception: healthy logs have such a warning, too."""
        file, last = self._files[event.line.file], event.sighting.last
        if event.sighting.symptom.needs in ("no-step", "differs") or is_raised(last):
            return False
        return below(file, last) > AFTER_END and not any(line.final for line in file.odd)

    def _later(self, line: LogLine, step: LogLine) -> bool:
        """Whether a step came after the line, by any rank and by any clock that states its zone alike."""
        if step.file == line.file:
            return step.number > line.number
        apart = self._clocks.apart(line, step)
        if apart is None and step.at is not None and line.at is not None and step.zoned is line.zoned:
            apart = step.at - line.at
        return apart is not None and apart > TOGETHER


def _of(sighting: Sighting) -> str | None:
    """The pod or the program that it is about."""
    return sighting.taken.get("pod", sighting.taken.get("which_program"))


def got_over(event: Event, sightings: Iterable[Sighting], found: Iterable[Event]) -> bool:
    """Whether an event about the same pod, or a later line of the same rank, shows that it went on and did
    no harm before.
    """
    later, last = _OVER.get(event.id), event.sighting.last
    pod, host = _of(event.sighting), event.sighting.taken.get("guilty_host")
    cleared = [
        each.last.number
        for each in (sightings if later else ())
        if each.symptom.id == later
        and each.last.file == last.file
        and pod in (None, _of(each))
        and host in (None, each.taken.get("guilty_host", host))
        and (later not in _LATER or each.last.number > last.number)
        and (each.last.who.rank in (None, last.who.rank) or "guilty_host" in each.taken)
        and (later not in _LATER or each.last.who == last.who or "guilty_host" in each.taken)
    ]
    if not cleared or last.form is not Form.KERNEL:
        return bool(cleared)
    harm = (one.line for one in found if one.line.file == last.file and explains(event, one))
    return min(cleared) <= min((line.number for line in harm), default=min(cleared))


def outdone(event: Event, found: Iterable[Event]) -> bool:
    """Whether it is what healthy logs show, too, and another cause ended a rank with an exception."""
    last, warns = event.sighting.last, event.sighting.symptom.needs in ("last", "end", "no-step")
    raised = (each for each in found if warns and is_raised(each.line) and not each.sighting.symptom.needs)
    return any(
        event.kind is each.kind is SuspectKind.ROOT
        and each.line.file == last.file
        and each.line.number > last.number
        and not explains(event, each)
        for each in raised
    )


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
    kind = event.kind in _FORGIVEN and not event.doubted
    return event.overcome and (kind or bool(event.sighting.symptom.needs))


def _ends_it(line: LogLine) -> bool:
    """Whether the writer of such a line usually ends: it is an exception, or reports a signal."""
    return line.form is Form.PYTHON or _SIGNAL.search(line.text) is not None
