"""The logs, prepared once for all rules: which lines count, who wrote them, whom they are about, and when."""

from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TypeGuard

from doctor.logs.judge.attribution import FIRST_FAILURE, attributed, without_tasks
from doctor.logs.judge.clocks import Clock, Clocks, clocks_of, step_of
from doctor.logs.judge.event import Event, Writer, event_of, filled
from doctor.logs.judge.job_facts import JobFacts
from doctor.logs.judge.kernel_events import of_others
from doctor.logs.judge.kinds import SuspectKind
from doctor.logs.judge.parties import Key, PartyMaps, places_of, tasks_start_ranks
from doctor.logs.judge.recovery import Recovery, Steps, differing, forgiven, got_over, lacks_effect, outdone
from doctor.logs.model import CUT, HINT, OF_OTHERS, Form, LogLine, Logs, Party
from doctor.logs.steps import says_trained

INTERRUPTED = "python-interrupted"
"""The symptom of a rank that Ctrl-C ended."""
BOOT = "kernel-began"
"""The symptom of the first line of a kernel."""
OLD = 300.0
"""A kernel line that is older than the job's first line by more than these seconds belongs to another job.
For a restarted job the limit is 0: an attempt begins with its first line."""
_BETTER = {
    "kernel-blocked-cut": ("kernel-blocked",),
    "kernel-blocked-state": ("kernel-blocked", "kernel-blocked-cut"),
    "acl-507015": ("acl-507014",),
}
"""Symptoms, and those that say the same better, if they are about the same process."""
_REPORTS = {Form.KERNEL, Form.ELASTIC, Form.MPI, Form.SLURM}
"""Those who write about the job, and not for it."""


@dataclass(frozen=True)
class LogCase:
    logs: Logs
    known: JobFacts
    places: PartyMaps
    clocks: Clocks
    events: tuple[Event, ...]
    """In order of time; if the time is unknown, in order of file names."""
    overcome: tuple[Event, ...] = ()
    """Complaints after which the job went on."""
    doubted: tuple[Event, ...] = ()
    """Those after which a log says that the training is over: so may a script whose program ended."""
    odd: tuple[tuple[Party, LogLine], ...] = ()
    last_steps: Mapping[int, tuple[int, LogLine]] = field(default_factory=dict)
    """The last step of each rank, and the line that states it."""
    aside: tuple[Event, ...] = ()
    """What the kernel reports of other programs and of earlier runs."""

    def of(self, *kinds: SuspectKind) -> tuple[Event, ...]:
        return tuple(each for each in self.events if each.kind in kinds)

    @cached_property
    def waiting(self) -> frozenset[int]:
        """Ranks that waited for others until they timed out."""
        return frozenset(rank for each in self.of(SuspectKind.WAITS) for rank in each.ranks)

    @cached_property
    def left_alone(self) -> frozenset[int]:
        """Ranks that waited, or whose connections others closed."""
        events = self.of(SuspectKind.WAITS, SuspectKind.CLOSED)
        return frozenset(rank for each in events for rank in each.ranks)

    @cached_property
    def stopped(self) -> frozenset[Key]:
        return frozenset(key for each in self.of(SuspectKind.STOPPED) for key in each.keys)

    @cached_property
    def first_failures(self) -> dict[int, LogLine]:
        """The ranks that a torchrun saw fail first on its host, and the lines of its tables that say so."""
        return {rank: each.line for each in self.events if each.id == FIRST_FAILURE for rank in each.ranks}

    @cached_property
    def tasks_start_ranks(self) -> bool:
        return tasks_start_ranks(self.logs)

    @cached_property
    def interrupted(self) -> frozenset[int]:
        """Ranks that Ctrl-C ended."""
        return frozenset(rank for each in self.events if each.id == INTERRUPTED for rank in each.ranks)

    @cached_property
    def logged(self) -> frozenset[int]:
        """Ranks whose own lines were read."""
        own = {rank for file in self.logs.files for rank in file.ranks}
        own |= {file.who.rank for file in self.logs.files if file.who.rank is not None}
        writers = (each for each in self.events if each.line.form not in OF_OTHERS)
        own |= {each.by.rank for each in writers if each.by.rank is not None} | self.last_steps.keys()
        return frozenset(own | {party.rank for party, _ in self.odd if party.rank is not None})

    @cached_property
    def covered(self) -> frozenset[int]:
        """`logged`, and the ranks in the log of a launcher, which shows their output."""
        told = (each for each in self.events if each.line.form is Form.ELASTIC)
        return self.logged | {rank for each in told for rank in each.ranks}

    @cached_property
    def world(self) -> int | None:
        said = [file.world for file in self.logs.files if file.world]
        said += [table.ranks for table in self.known.tables if table.ranks]
        if self.known.world:
            said.append(self.known.world)
        said += [max(self.covered) + 1] if said and self.covered else []
        return max(said) if said else None

    @property
    def missing(self) -> tuple[int, ...]:
        """Ranks of the job from which nothing was read."""
        known = self.world is not None and self.world <= 1_000_000
        number = self.world if known and self.world else max(self.covered, default=-1) + 1
        return tuple(r for r in range(number) if r not in self.covered) if known or number <= 100_000 else ()

    def before(self, one: Event, other: Event) -> bool:
        return self.clocks.before(one.line, other.line)

    def silent(self) -> tuple[int, ...]:
        """Ranks with a log that do not complain and are not reported to have ended by themselves."""
        ends = (SuspectKind.STOPPED, SuspectKind.DIED, SuspectKind.LEFT)
        loud = {rank for each in self.events if each.kind not in ends for rank in each.ranks}
        stopped = {key[1] for key in self.stopped if key[0] == "rank"}
        loud |= {rank for each in self.of(*ends[1:]) for rank in each.ranks if rank not in stopped}
        loud -= {rank for each in self.of(SuspectKind.NAMES) for rank in each.ranks}
        loud |= self.left_alone
        loud |= {party.rank for party, line in self.odd if party.rank is not None and CUT in line.text}
        return tuple(sorted(self.covered - loud))


def case_of(logs: Logs, known: JobFacts) -> LogCase:
    places = places_of(logs, known)
    files = {file.name: file for file in logs.files}

    def writer(line: LogLine) -> Party:
        file = files[line.file]
        return places.settled(filled(line.who, file.who), file)

    def clock(line: LogLine) -> Clock:
        return (writer(line).host or f"file {line.file}", line.zoned)

    ordered = sorted(logs.files, key=lambda file: (min(file.ranks, default=1 << 40), file.name))
    lines = [line for file in ordered for line in (*file.progress, *((file.last,) if file.last else ()))]
    lines += [each.first for each in sorted(logs.sightings, key=lambda each: each.first.file)]
    clocks = clocks_of(logs, known, clock, lines)
    steps = _progress(logs, writer)
    found = [
        event for each in logs.sightings if (event := event_of(each, files[each.first.file], places, writer))
    ]
    starts = _starts(logs, clock)
    old = 0.0 if logs.earlier else OLD
    begun = [each.last for each in logs.sightings if each.symptom.id == BOOT]
    boots = {clocks.of(line): line for line in begun}
    found = [each for each in found if not _of_another_time(each, clocks, starts, old, boots)]
    alone = all(Form.KERNEL in file.forms for file in logs.files)
    ranks = ((each.sighting, any(one.rank is not None for one in each.who)) for each in found)
    left = of_others(ranks, bool(starts), alone)
    aside = tuple(each for each in found if id(each.sighting) in left and "pid" in each.sighting.taken)
    found = [each for each in found if id(each.sighting) not in left]
    found = differing(found)
    recovery = Recovery(found, files, steps, clocks, logs.curves)
    found = [recovery.weighed(each) for each in found]
    found = [each for each in found if not (got_over(each, logs.sightings, found) or outdone(each, found))]
    found = _best(found)
    if tasks_start_ranks(logs):
        found = list(map(without_tasks, found))
    works = logs.sightings or any(file.progress or file.over for file in logs.files)
    said = (line for file in logs.files for line in file.odd if not (works and line.level == HINT))
    odd = [(writer(line), line) for line in said]
    found, odd = attributed(found, odd)
    found.sort(key=lambda each: _order(each, clocks))
    odd = sorted(
        ((party, line) for party, line in odd if not recovery.clears(party, line)),
        key=lambda each: (each[1].file, each[1].number),
    )
    count = [each for each in found if not (each.doubted or forgiven(each))]
    return LogCase(
        logs, known, places, clocks,
        tuple(each for each in count if not lacks_effect(each, count)),
        tuple(each for each in found if forgiven(each)),
        tuple(each for each in found if each.doubted),
        tuple(odd), _last_steps(steps), aside,
    )  # fmt: skip


def _last_steps(steps: Steps) -> dict[int, tuple[int, LogLine]]:
    found = {}
    for rank in sorted(rank for rank in steps if rank is not None):
        numbered = [(step, line) for line in steps[rank] if (step := step_of(line.text)) is not None]
        if numbered:
            found[rank] = max(numbered, key=lambda each: each[0])
    return found


def _best(events: list[Event]) -> list[Event]:
    """The events without those that another one says better."""
    better = {id: [one for one in events if one.id in ids] for id, ids in _BETTER.items()}
    return [
        each
        for each in events
        if not any(
            one.line.file == each.line.file and _pids(one) & _pids(each) for one in better.get(each.id, ())
        )
    ]


def _pids(event: Event) -> set[int]:
    return {each.pid for each in (event.by, *event.who) if each.pid is not None}


def _of_another_time(
    event: Event, clocks: Clocks, starts: Mapping[Clock, float], old: float, boots: Mapping[Clock, LogLine]
) -> bool:
    """Whether a kernel message is older than the job, by the clock of the same host. `boots`: the last line
    of each host that says that its kernel began.
    """
    last = event.sighting.last
    start = starts.get(clocks.of(event.line))
    if event.line.form is not Form.KERNEL or last.at is None or start is None:
        return False
    boot = boots.get(clocks.of(event.line))
    return (boot is not None and boot.at is not None and last.at < boot.at <= start) or last.at < start - old


def _starts(logs: Logs, clock: Callable[[LogLine], Clock]) -> dict[Clock, float]:
    """When the job's first line was written, for each clock."""
    found: dict[Clock, float] = {}
    for file in logs.files:
        if file.first_at is not None and file.last is not None and Form.KERNEL not in file.forms:
            of = clock(file.last)
            found[of] = min(found.get(of, file.first_at), file.first_at)
    return found


def _order(event: Event, clocks: Clocks) -> tuple[float, str, int]:
    at = clocks.at(event.line)
    return (at if at is not None else float("inf"), event.line.file, event.line.number)


def _says_success(line: LogLine | None) -> TypeGuard[LogLine]:
    """Whether the last line of a file says that the training succeeded."""
    if line is None or line.form in _REPORTS:
        return False
    return line.level not in ("ERROR", "FATAL", "WARN") and says_trained(line.text)


def _progress(logs: Logs, writer: Writer) -> dict[int | None, list[LogLine]]:
    found: dict[int | None, list[LogLine]] = defaultdict(list)
    for file in logs.files:
        for line in [*file.progress, *([file.last] if _says_success(file.last) else [])]:
            rank = writer(line).rank
            found[rank if rank is not None else file.who.rank].append(line)
    for curve in logs.curves:
        if curve.lines:
            at = curve.seconds[-1] if curve.seconds else None
            text = f"step {curve.steps[-1]}"
            found[curve.who.rank].append(LogLine(curve.file, curve.lines[-1], text, who=curve.who, at=at))
    return found
