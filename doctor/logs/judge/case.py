"""The logs, prepared once for all rules: which lines count, who wrote them, whom they are about, and when."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from functools import cache, cached_property

from doctor.logs.judge.clocks import TOGETHER, Clock, Clocks, clocks_of, step_of
from doctor.logs.judge.job_facts import JobFacts
from doctor.logs.judge.kernel_events import of_others
from doctor.logs.judge.kinds import SuspectKind, killed_pid, kind_of
from doctor.logs.judge.parties import Key, PartyMaps, key, named, numbers, places_of, tasks_start_ranks
from doctor.logs.model import Form, LogFile, LogLine, Logs, Party, Role, Sighting

Writer = Callable[[LogLine], Party]
INTERRUPTED = "python-interrupted"
"""The symptom of a rank that Ctrl-C ended."""
FIRST_FAILURE = "torchrun-first"
"""The symptom of torchrun's table that names the rank that failed first on its host."""
NEAR_END = 200
"""This number of last lines counts as the end of a file."""
LAST_WORDS = 3
"""A `repeated` symptom that occurs only once still counts within this number of lines from the end."""
LATE = 60.0
"""Seconds before the last line that still count as the end of a file."""
OLD = 300.0
"""A kernel line that is older than the job's first line by more than these seconds belongs to another job.
For a restarted job the limit is 0: an attempt begins with its first line."""
HELD_BACK = 8192
"""The most characters that print() held back, which Python writes when it ends, after its last exception."""
WRITERS = 4
"""HELD_BACK is multiplied by this if another rank may have written the step."""
MOST_READY = 100_000
"""The most ranks that a list of those that are ready may imply."""
_BAR = re.compile(r"\d{1,12}/\d{1,12} \[")
_OF_OTHERS = {Form.KERNEL, Form.ELASTIC, Form.MPI, Form.SLURM, Form.RAS}
"""Forms of programs that write about ranks but are not ranks."""
_SIGNAL = re.compile(r"\b(?:Killed|Aborted|Terminated|Bus error|Segmentation fault|Local abort)\b")
_OVER = {
    "kubernetes-no-room": "kubernetes-placed",
    "kubernetes-image": "kubernetes-started",
    "kubernetes-volume": "kubernetes-started",
    "ray-terminated": "ray-shut-down",
}
"""Symptoms, and what a file says, above or below, if they are over or were wanted: kubectl does not list
events in their order."""
_BETTER = {
    "kernel-blocked-cut": ("kernel-blocked",),
    "kernel-blocked-state": ("kernel-blocked", "kernel-blocked-cut"),
    "acl-507015": ("acl-507014",),
}
"""Symptoms, and those that say the same better, if they are about the same process."""
_OF_PROGRAM = {Form.PYTHON, Form.PLAIN}
"""Forms of what a rank itself prints."""
_LAUNCHERS = {Form.ELASTIC, Form.MPI, Form.SLURM}
_ENDED = {SuspectKind.LEFT, SuspectKind.DIED}
_LEFT_ALONE = {SuspectKind.WAITS, SuspectKind.CLOSED, SuspectKind.AFTER}
_FORGIVEN = {
    SuspectKind.WAITS,
    SuspectKind.CLOSED,
    SuspectKind.AFTER,
    SuspectKind.LINK,
    SuspectKind.ABSENT,
    SuspectKind.CONFIRMS,
}


@dataclass(frozen=True, slots=True)
class Event:
    """A sighting that counts. `who` are the parties that it is about; empty if they are unknown."""

    sighting: Sighting
    kind: SuspectKind
    by: Party
    who: tuple[Party, ...] = ()
    peers: tuple[Party, ...] = ()
    overcome: bool = False
    """Its rank went on after it."""

    @property
    def line(self) -> LogLine:
        return self.sighting.first

    @property
    def id(self) -> str:
        return self.sighting.symptom.id

    @property
    def keys(self) -> frozenset[Key]:
        return frozenset(key(each, self.line.file) for each in self.who or (self.by,))

    @property
    def ranks(self) -> frozenset[int]:
        return frozenset(each.rank for each in self.who or (self.by,) if each.rank is not None)


def explains(one: Event, other: Event) -> bool:
    return _matches(other.id, one.sighting.symptom.explains)


@cache
def _matches(id: str, globs: tuple[str, ...]) -> bool:
    return any(fnmatchcase(id, glob) for glob in globs)


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
        links = (each for each in self.of(SuspectKind.LINK) if each.sighting.symptom.role is Role.CONSEQUENCE)
        return frozenset(rank for each in (*events, *links) for rank in each.ranks)

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
        writers = (each for each in self.events if each.line.form not in _OF_OTHERS)
        own |= {each.by.rank for each in writers if each.by.rank is not None}
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
        if self.world is not None and self.world <= 1_000_000:
            return tuple(rank for rank in range(self.world) if rank not in self.covered)
        top = max(self.covered, default=-1)
        return tuple(r for r in range(top + 1) if r not in self.covered) if top < 100_000 else ()

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
        return tuple(sorted(self.covered - loud))


def case_of(logs: Logs, known: JobFacts) -> LogCase:
    places = places_of(logs, known)
    files = {file.name: file for file in logs.files}

    def writer(line: LogLine) -> Party:
        file = files.get(line.file)
        return places.settled(_with(line.who, file.who if file else Party()), file)

    def clock(line: LogLine) -> Clock:
        by = writer(line)
        return (by.host or f"file {line.file}", line.zoned)

    ordered = sorted(logs.files, key=lambda file: (min(file.ranks, default=1 << 40), file.name))
    lines = [line for file in ordered for line in (*file.progress, *((file.last,) if file.last else ()))]
    lines += [each.first for each in sorted(logs.sightings, key=lambda each: each.first.file)]
    clocks = clocks_of(logs, known, clock, lines)
    steps = _progress(logs, writer)
    found = [
        event
        for each in logs.sightings
        if (event := _event(each, files.get(each.first.file), places, writer, clocks, steps))
    ]
    starts = _starts(logs, clock)
    old = 0.0 if logs.earlier else OLD
    found = [each for each in found if not _of_another_time(each, clocks, starts, old)]
    alone = all(Form.KERNEL in file.forms for file in logs.files)
    ranks = ((each.sighting, any(one.rank is not None for one in each.who)) for each in found)
    left = of_others(ranks, bool(starts), alone)
    aside = tuple(each for each in found if id(each.sighting) in left and "pid" in each.sighting.taken)
    found = [each for each in found if id(each.sighting) not in left]
    busy = frozenset(each.line.file for each in found if not each.sighting.symptom.needs)
    calm = not busy
    every = [line for lines in steps.values() for line in lines]
    found = [
        replace(each, overcome=True)
        if _healthy_end(each, files, busy)
        or (
            calm
            and every
            and not _lasts(each.sighting)
            and (_retries(each, files) or any(_later(each.sighting.last, s, clocks) for s in every))
        )
        else each
        for each in found
    ]
    found = [each for each in found if not _got_over(each, logs.sightings)]
    found = _best(found)
    if tasks_start_ranks(logs):
        found = list(map(_without_tasks, found))
    odd = [(writer(line), line) for file in logs.files for line in file.odd]
    found, odd = _first_failures(found, odd)
    found.sort(key=lambda each: _order(each, clocks))
    last: dict[int, tuple[int, LogLine]] = {}
    for rank, several in sorted(steps.items(), key=lambda each: (each[0] is None, each[0] or 0)):
        numbered = [(step, line) for line in several if (step := step_of(line.text)) is not None]
        if rank is not None and numbered:
            last[rank] = max(numbered, key=lambda each: each[0])
    odd = sorted(
        (
            (party, line)
            for party, line in odd
            if not _overcome_odd(party, line, files.get(line.file), steps)
            and not (calm and any(_calms(line, step, clocks) for step in every))
        ),
        key=lambda each: (each[1].file, each[1].number),
    )
    count = [each for each in found if not _forgiven(each)]
    return LogCase(
        logs, known, places, clocks,
        tuple(each for each in count if not _lacks_effect(each, count)),
        tuple(each for each in found if _forgiven(each)),
        tuple(odd), last, aside,
    )  # fmt: skip


def _got_over(event: Event, sightings: Iterable[Sighting]) -> bool:
    """Whether an event about the same pod shows that it went on after it."""
    later = _OVER.get(event.id)
    pod = event.sighting.taken.get("pod")
    return later is not None and any(
        each.symptom.id == later
        and each.last.file == event.line.file
        and pod in (None, each.taken.get("pod"))
        for each in sightings
    )


def _best(events: list[Event]) -> list[Event]:
    """The events without those that another one says better."""
    better: dict[tuple[str, str], list[Event]] = defaultdict(list)
    wanted = {id for ids in _BETTER.values() for id in ids}
    for each in events:
        if each.id in wanted:
            better[each.line.file, each.id].append(each)
    return [
        each
        for each in events
        if not any(
            _same_process(one, each)
            for id in _BETTER.get(each.id, ())
            for one in better.get((each.line.file, id), ())
        )
    ]


def _same_process(one: Event, other: Event) -> bool:
    """Whether both are about one process at one time. The kernel's lines may lack their process."""
    moments = one.line.at, other.line.at
    if None not in moments and abs((moments[0] or 0.0) - (moments[1] or 0.0)) > LATE:
        return False
    pids = [{each.pid for each in (event.by, *event.who) if each.pid is not None} for event in (one, other)]
    return bool(pids[0] & pids[1]) or (not pids[1] and other.line.form is Form.KERNEL)


def _without_tasks(event: Event) -> Event:
    """The event about hosts, if Slurm's tasks are launchers, which are not ranks."""
    if event.line.form is not Form.SLURM:
        return event
    about = tuple(dict.fromkeys(replace(each, rank=None) for each in event.who))
    return replace(event, by=replace(event.by, rank=None), who=about)


def _first_failures(
    events: list[Event], odd: list[tuple[Party, LogLine]]
) -> tuple[list[Event], list[tuple[Party, LogLine]]]:
    """Attributes exceptions of unknown ranks to the rank that torchrun saw fail first, if the file has only
    one such rank. A rank that others only left alone is not a cause.
    """
    alone: dict[str, set[Party]] = defaultdict(set)
    """The processes in torchrun's line about the first that failed, if its table is not in the file."""
    tables: dict[str, set[Party]] = defaultdict(set)
    for each in events:
        if each.id == FIRST_FAILURE and each.by.rank is not None:
            tables[each.line.file].add(each.by)
    for each in events:
        if "failed (exitcode: " in each.line.text and each.kind in _ENDED and each.line.file not in tables:
            alone[each.line.file] |= set(each.who)
    tables |= alone
    first = {file: next(iter(ranks)) for file, ranks in tables.items() if len(ranks) == 1}
    nameless = [each for each in events if each.line.form is Form.PYTHON and each.by.rank is None]
    own = {each.line.file for each in nameless if each.kind is SuspectKind.ROOT}
    own |= {line.file for party, line in odd if line.form is Form.PYTHON and party.rank is None}

    left: dict[str, set[int]] = defaultdict(set)
    for each in events:
        if each.kind in _ENDED:
            left[each.line.file] |= each.ranks

    def known(each: Event) -> Event:
        rank = first.get(each.line.file)
        if 1 < len(left[each.line.file]) <= each.sighting.count:
            return each  # each of them said so
        if rank is None or each.line.form not in _OF_PROGRAM or each.by.rank is not None:
            return each
        if each.kind is not SuspectKind.ROOT and (each.kind not in _LEFT_ALONE or each.line.file in own):
            return each
        device = each.who[0].device if each.who else None
        one = replace(rank, device=rank.device if device is None else device)
        return replace(each, by=one, who=(one,))

    named = [
        (first.get(line.file, party) if line.form is Form.PYTHON and party.rank is None else party, line)
        for party, line in odd
    ]
    return list(map(known, events)), named


def _of_another_time(event: Event, clocks: Clocks, starts: Mapping[Clock, float], old: float) -> bool:
    """Whether a kernel message is older than the job, by the clock of the same host."""
    if event.line.form is not Form.KERNEL or event.sighting.last.at is None:
        return False
    start = starts.get(clocks.of(event.line))
    return start is not None and event.sighting.last.at < start - old


def _starts(logs: Logs, clock: Callable[[LogLine], Clock]) -> dict[Clock, float]:
    """When the job's first line was written, for each clock."""
    found: dict[Clock, float] = {}
    for file in logs.files:
        if file.first_at is not None and file.last is not None and Form.KERNEL not in file.forms:
            of = clock(file.last)
            found[of] = min(found.get(of, file.first_at), file.first_at)
    return found


def _lasts(sighting: Sighting) -> bool:
    """Whether the line states what is so from then on, such as a slower network: steps do not refute it."""
    return sighting.symptom.needs == "effect"


def _lacks_effect(event: Event, found: Iterable[Event]) -> bool:
    """Whether healthy logs show the symptom too, and nothing that it explains happened."""
    return _lasts(event.sighting) and not any(explains(event, each) for each in found)


def _forgiven(event: Event) -> bool:
    return event.overcome and (event.kind in _FORGIVEN or bool(event.sighting.symptom.needs))


def _order(event: Event, clocks: Clocks) -> tuple[float, str, int]:
    at = clocks.at(event.line)
    return (at if at is not None else float("inf"), event.line.file, event.line.number)


def _with(who: Party, more: Party) -> Party:
    pairs = (
        (who.rank, more.rank),
        (who.host, more.host),
        (who.device, more.device),
        (who.pid, more.pid),
    )
    rank, host, device, pid = (b if a is None else a for a, b in pairs)
    return Party(rank, host, device, pid, who.address or more.address)  # type: ignore[arg-type]


def _progress(logs: Logs, writer: Writer) -> dict[int | None, list[LogLine]]:
    found: dict[int | None, list[LogLine]] = defaultdict(list)
    for file in logs.files:
        for line in file.progress:
            rank = writer(line).rank
            found[rank if rank is not None else file.who.rank].append(line)
    for curve in logs.curves:
        if curve.lines and curve.steps:
            last = len(curve.steps) - 1
            while last and curve.steps[last - 1] >= curve.steps[last]:
                last -= 1  # a progress bar prints its last state again at the end
            at = curve.seconds[last] if curve.seconds and not curve.step_time else None
            text = f"step {curve.steps[last]}"
            found[curve.who.rank].append(LogLine(curve.file, curve.lines[last], text, who=curve.who, at=at))
    return found


def _event(
    sighting: Sighting,
    file: LogFile | None,
    places: PartyMaps,
    writer: Writer,
    clocks: Clocks,
    steps: Mapping[int | None, Iterable[LogLine]],
) -> Event | None:
    kind = kind_of(sighting)
    if kind is None or not _counts(sighting, file):
        return None
    line, taken = sighting.first, sighting.taken
    by: Party = writer(line)
    about = tuple(places.settled(each, None) for each in (*named(taken), *_not_ready(taken, file)))
    guilty = tuple(places.settled(each, None) for each in named(taken, "guilty_"))
    peers = tuple(places.settled(each, None) for each in named(taken, "peer_"))
    of_others = line.form in _OF_OTHERS or kind in (
        SuspectKind.NAMES,
        SuspectKind.DIED,
        SuspectKind.LEFT,
        SuspectKind.STOPPED,
    )
    if line.form is Form.KERNEL and "victim" in taken:
        about = _on_device(taken, by, places)
    elif line.form is Form.KERNEL and not any(each.pid is not None for each in about):
        pid = killed_pid(sighting)
        about = tuple(replace(each, pid=pid) for each in about or ((Party(pid=pid),) if pid else ()))
    if of_others:
        there = Party(host=by.host)
        about = tuple(
            places.settled(_with(each, there if each.rank is None and not each.address else Party()), file)
            for each in about
        )
        if not about and kind is not SuspectKind.NAMES:
            launcher = line.form in (Form.MPI, Form.SLURM) and by.rank is None and not _own_signal(line)
            about = (by,) if key(by)[0] != "file" and not launcher else ()
    else:
        if kind in (SuspectKind.LINK, SuspectKind.WAITS, SuspectKind.CLOSED) and not peers:
            peers = tuple(replace(each, rank=None) for each in about if each.host or each.address)
            peers = tuple(places.settled(each, None) for each in peers)
            if "client socket has failed to connect to" in line.text:
                peers = ()  # in this message torch does not print the addresses that it tried
        own = replace(about[0], pid=None, address=None) if len(about) == 1 else Party()
        if own.rank is None and not named(taken, "peer_"):  # it is that of another end
            own = replace(own, host=None)
        by = places.settled(_with(by, own), file)
        named_ranks = [each for each in about if each.rank is not None]
        several = kind is SuspectKind.ROOT and len(named_ranks) > 1
        about = tuple(places.settled(each, file) for each in named_ranks) if several else (by,)
    about = guilty or about
    return Event(sighting, kind, by, about, peers, _overcome(sighting, kind, by.rank, file, clocks, steps))


def _own_signal(line: LogLine) -> bool:
    """Whether a process itself reports its signal, as the crash handler of Open MPI does."""
    return line.form is Form.MPI and "Signal: " in line.text


def _not_ready(taken: Mapping[str, str], file: LogFile | None) -> Iterable[Party]:
    """The ranks that a list of those that are ready lacks; beyond its end only if the number is known."""
    ready = {*numbers(taken.get("ready", ""))}
    if not ready:
        return ()
    world = max(max(ready) + 1, file.world or 0 if file else 0)
    return [Party(rank=each) for each in range(world) if each not in ready] if world < MOST_READY else ()


def _on_device(taken: Mapping[str, str], by: Party, places: PartyMaps) -> tuple[Party, ...]:
    """The rank that used the faulty device. Its process met the fault, and is not to blame for it."""
    pid = taken["victim"]
    party = places.settled(Party(host=by.host, pid=int(pid) if pid.isdecimal() else None), None)
    return (replace(party, pid=None),) if party.rank is not None or party.host else ()


def _overcome(
    sighting: Sighting,
    kind: SuspectKind,
    rank: int | None,
    file: LogFile | None,
    clocks: Clocks,
    steps: Mapping[int | None, Iterable[LogLine]],
) -> bool:
    """Whether a later step proves that the writer of the line went on. Nobody goes on after a signal."""
    line, needs = sighting.last, bool(sighting.symptom.needs)
    if (kind is SuspectKind.DIED and not needs) or _lasts(sighting):
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


def _steps_of(rank: int | None, file: str, steps: Mapping[int | None, Iterable[LogLine]]) -> list[LogLine]:
    """The steps of a rank. If the rank of a line is unknown, all steps of its file count."""
    own = [*steps.get(rank, ())]
    if rank is None:
        return own + [line for lines in steps.values() for line in lines if line.file == file]
    return own + [line for line in steps.get(None, ()) if line.file == file]


def _healthy_end(event: Event, files: Mapping[str, LogFile], busy: frozenset[str]) -> bool:
    """Whether healthy logs show the symptom too, and its file has no other complaint and goes on after it."""
    file = files.get(event.line.file)
    needs = event.sighting.symptom.needs
    if needs in ("", "no-step", "effect") or file is None or file.name in busy:
        return False
    return file.lines - event.sighting.last.number > LAST_WORDS


def _retries(event: Event, files: Mapping[str, LogFile]) -> bool:
    """Whether a job that makes steps has recovered from the event, whichever file it is in. It has not if
    this file has steps and ends with the event.
    """
    file = files.get(event.line.file)
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


def _overcome_odd(
    party: Party, line: LogLine, file: LogFile | None, steps: Mapping[int | None, Iterable[LogLine]]
) -> bool:
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


def _counts(sighting: Sighting, file: LogFile | None) -> bool:
    needs = sighting.symptom.needs
    if not needs or needs == "effect":
        return True
    last = sighting.last
    if needs == "repeated" and sighting.count > 1:
        return True
    if needs == "end":
        return file is not None and file.lines - last.number < LAST_WORDS
    near = file is not None and file.lines - last.number <= (
        NEAR_END if needs in ("last", "no-step") else LAST_WORDS
    )
    if needs == "no-step":
        return near
    if near and file is not None and file.last_at is not None and last.at is not None:
        return file.last_at - last.at <= LATE
    return near
