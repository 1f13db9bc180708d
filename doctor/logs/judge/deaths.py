"""Ranks that ended: by a signal, with an exit code, or by an exception that no symptom matches.

An end that only follows from another is left out: an exit code after a lost connection, a kill after SIGTERM.
"""

import re
from collections.abc import Collection, Sequence

from doctor.logs.judge.case import INTERRUPTED, LogCase
from doctor.logs.judge.event import Event
from doctor.logs.judge.kinds import LAUNCHERS, SuspectKind, exit_of, killed_pid, lacks_memory, signal_of
from doctor.logs.judge.parties import covers, key
from doctor.logs.judge.suspect import MOST, Suspect
from doctor.logs.model import Form, LogLine, Party
from doctor.logs.reading.stacks import own_frame
from doctor.text.hostprogram import table

SOON = 60.0
"""The most seconds between the messages of the kernel and of the launcher about the same end."""
GRACE = 30.0
"""Seconds after which torchrun kills the ranks that its SIGTERM did not end."""
_CRASHES = (4, 7, 8, 11)
"""Signals by which a process ends for what it did itself."""
_SLURM_ENDS = ("CANCELLED AT", "Job step aborted", "Force Terminated", "_step_signal: Terminating")
_VALUE = re.compile(r"\d+|'[^']*'")
_COMPLAINTS = (SuspectKind.WAITS, SuspectKind.CLOSED, SuspectKind.LINK, SuspectKind.ABSENT)
_ENTRY, _EXCEPTION, OF_OTHERS, PLACE, _ANY_NAME = (
    re.compile("|".join(rows)) for _, *rows in table(__file__, "deaths.txt")
)
LOGGED = (Form.PLAIN, Form.TORCH)


def deaths_of(case: LogCase) -> list[Suspect]:
    found: list[Suspect] = []
    for event in case.of(SuspectKind.DIED, SuspectKind.LEFT):
        if _follows(case, event) or _of_another_job(case, event):
            continue
        for party in event.who:
            same = next((each for each in found[:MOST] if _same(case, each, party, event)), None)
            if same is None:
                found.append(Suspect({party: None}, [event]))
                continue
            same.events.append(event)
            if party.rank is not None and same.one.rank is None:
                same.who = {party: None}
    nameless = [
        event for event in case.of(SuspectKind.DIED) if not event.who and lacks_memory(event.sighting)
    ]
    if len(found) == 1 and all(signal_of(event.sighting) == 9 for event in found[0].events):
        found[0].events += nameless
    for each in found:
        each.events.sort(
            key=lambda event: (
                not lacks_memory(event.sighting),
                event.kind is not SuspectKind.DIED,
                "process" not in event.sighting.taken,
                killed_pid(event.sighting) is None,
            )
        )
        forms = {event.line.form for event in each.events}
        by_kernel = any(lacks_memory(one.sighting) or one.line.form is Form.KERNEL for one in each.events)
        pids = [{who.pid for who in event.who if who.pid is not None} for event in each.events]
        each.confirmed = by_kernel and len(forms) > 1 and len(set().union(*pids)) < 2
    return found


def nameless_death(case: LogCase) -> list[Suspect]:
    """A process that a signal ended, if no line says which: the only cause that is known."""
    events = [each for each in case.of(SuspectKind.DIED) if not each.who]
    if not events or case.of(SuspectKind.SCHEDULER) or any(each.id == INTERRUPTED for each in case.events):
        return []  # the scheduler or a person sent the signal
    return [Suspect({Party(): None}, events)]


def _same(case: LogCase, death: Suspect, party: Party, event: Event) -> bool:
    """Whether an event is about the same end. The kernel names a process, Slurm a host or a task, the
    launcher a rank; a container numbers its processes differently from its host.
    """
    one = death.one
    if key(one) == key(party) or covers(one, party):
        return True
    if one.host is None or one.host != party.host or (one.rank is None) is (party.rank is None):
        return False
    pair = [event, *death.events]
    near = case.clocks.apart(death.events[0].line, event.line)
    by_kill = all(lacks_memory(each.sighting) or signal_of(each.sighting) == 9 for each in pair)
    return by_kill and (near is None or abs(near) <= SOON)


def _of_another_job(case: LogCase, event: Event) -> bool:
    """Whether the kernel killed a process that the job never mentions: no message of the job fits a kill."""
    if event.line.form is not Form.KERNEL or not lacks_memory(event.sighting):
        return False
    own = [each for each in case.events if each.line.form is not Form.KERNEL]
    return bool(own) and not any(
        each.kind in _COMPLAINTS or signal_of(each.sighting) == 9 or "kill" in each.line.text.lower()
        for each in own
    )


def _follows(case: LogCase, event: Event) -> bool:
    """Whether a rank ended that had complained of others, or that its launcher had ordered to end."""
    if lacks_memory(event.sighting):
        return False
    if (event.keys & case.stopped and signal_of(event.sighting) in (9, None)) or _killed_late(case, event):
        return True
    crashed = (each for each in case.of(SuspectKind.DIED) if each.line.form is Form.MPI and not _by_mpi(each))
    if _by_mpi(event) and any(crashed):  # its reports are in no order of time
        return True
    if event.line.form is Form.SLURM:
        if any(_slurm_was_ending(each, event) for each in case.events):
            return True
        if event.kind is SuspectKind.LEFT and case.tasks_start_ranks:
            return True  # its tasks are torchruns, which end because their ranks did
    if event.ranks and event.ranks <= case.left_alone | case.interrupted | _ended_by_others(case):
        return True
    # unless it ended before those that wait, it may have waited too, with its complaint not in these logs
    waits = case.of(SuspectKind.WAITS)
    if event.kind is SuspectKind.DIED:  # so may a launcher that somebody killed when they had waited in vain
        own = not event.ranks and any(each in event.line.text for each in LAUNCHERS)
        return bool(waits) and own and all(case.before(each, event) for each in waits)
    wrote = {rank for rank, (_, step) in case.last_steps.items() if step.file == event.line.file}
    if event.ranks and event.ranks <= wrote & case.first_failures.keys():  # they would be here
        return False
    return bool(waits) and not any(case.before(event, each) for each in waits)


def _killed_late(case: LogCase, event: Event) -> bool:
    """Whether torchrun's table tells of a kill as long after its first failure as torchrun waits for that."""
    if event.line.form is not Form.ELASTIC or signal_of(event.sighting) != 9:
        return False
    first, own = _first_of(case, event.line), event.line.at
    return bool(first and first.at and own and GRACE - 1 <= own - first.at <= GRACE * 2)


def _by_mpi(event: Event) -> bool:
    """Whether mpiexec reports SIGKILL, with which it also ends the others of a job after one rank ended."""
    return event.line.form is Form.MPI and event.kind is SuspectKind.DIED and signal_of(event.sighting) == 9


def _ended_by_others(case: LogCase) -> frozenset[int]:
    """Ranks that say that they end because of something before, such as an aborted communicator."""
    own = (each for each in case.of(SuspectKind.AFTER) if each.line.form is not Form.MPI)
    return frozenset(rank for each in own for rank in each.ranks)


def _slurm_was_ending(one: Event, other: Event) -> bool:
    """Whether Slurm was already ending the step: a kill by Slurm is then no evidence."""
    if "DUE TO TASK FAILURE" in one.line.text and other.kind is SuspectKind.LEFT:
        return False  # the task that failed
    before = one.line.file == other.line.file and one.line.number < other.line.number
    return before and any(each in one.line.text for each in _SLURM_ENDS)


def known_first(case: LogCase, deaths: list[Suspect]) -> list[Suspect]:
    """Prefer deaths whose own log was read: without it, a rank may just have lost its connection."""
    if not case.left_alone:
        return deaths
    own = [one for one in deaths if one.hard or one.exceptions or {p.rank for p in one.who} & case.logged]
    return own or deaths


def add_exceptions(case: LogCase, deaths: list[Suspect], others: Sequence[Suspect]) -> None:
    """Add exceptions of the program, which no symptom matches, but none that follow a lost connection. Whom
    its launcher ended is excused, unless it had raised what another one ended with.
    """
    known = {key(each) for suspect in others for each in suspect.who}
    complain = {each.line.file for each in case.of(*_COMPLAINTS)}
    follow = _ended_by_others(case)
    ill = bool(complain or follow or deaths or case.of(SuspectKind.CONFIRMS, SuspectKind.LEFT))
    after = dict[tuple[int | None, str], int]()
    for event in case.of(SuspectKind.AFTER):
        after.update({(rank, event.line.file): event.line.number for rank in event.ranks})
    own = [(party, line) for party, line in case.odd if party.rank not in case.left_alone]
    alike = {raised(line) for party, line in own if line.final and party.rank not in follow}
    above = _nameless_above(case, deaths)
    for each in deaths:
        each.exceptions += above
    for party, line in own:
        mine = key(party, line.file)
        before = raised(line) in alike and line.number < after.get((party.rank, line.file), 0)
        if raised(line) is None or mine in known or line in above or (party.rank in follow and not before):
            continue
        death = next((each for each in deaths if not each.keys.isdisjoint((mine, key(party)))), None)
        if party.rank is None and death is None and (mine[0] != "host" or line.file in complain):
            continue
        if death is not None:
            death.exceptions.append(line)
        elif ill:
            deaths.append(Suspect({party: None}, [], [line]))


def _nameless_above(case: LogCase, deaths: Sequence[Suspect]) -> list[LogLine]:
    """Exceptions of nobody known above the ends of their file, as many as these: alike, and without a logged
    step below.
    """
    ends = {e.line.file: e.line.number for each in deaths for e in each.events if e.kind is SuspectKind.LEFT}
    caught = {f.name: max((s.number for s in f.progress if s.level), default=0) for f in case.logs.files}
    found = [
        line
        for party, line in case.odd
        if key(party, line.file)[0] == "file" and caught[line.file] < line.number < ends.get(line.file, 0)
        if (said := raised(line)) and not OF_OTHERS.match(said)
    ]
    left = all(event.kind is SuspectKind.LEFT for each in deaths[1:] for event in each.events)
    enough = left and 0 < len(deaths) <= max(1, sum(line.times for line in found))
    return found if enough and len({raised(line) for line in found}) == 1 else []


def together(case: LogCase, deaths: Sequence[Suspect]) -> list[Suspect]:
    """Joins ranks of one of torchrun's tables: the one that failed first stands for all whose logs do not say
    why they ended. If its entry is cut off, those with the same exit code count as one suspect; so do
    those that mpiexec saw killed on one host.
    """
    first = {
        _table(case, case.first_failures[r], each): each
        for each in deaths
        if (r := each.one.rank) in case.first_failures
    }
    found: dict[object, Suspect] = {}
    for each in deaths:
        killed = all(map(_by_mpi, each.events))
        entry = next((event for event in each.events if killed or _ENTRY.match(event.line.text)), None)
        if each in first.values() or (each.hard and not killed) or each.exceptions or entry is None:
            found[id(each)] = each
            continue
        table = _table(case, entry.line, each)
        head = first.get(table) or found.setdefault((table, exit_of(entry.sighting)), each)
        if head is not each:
            head.events += each.events
            if table in first and not _at_once(head, each):
                head.beside += (each.one,)
            else:
                head.who |= each.who
    return list(found.values())


def _at_once(one: Suspect, other: Suspect) -> bool:
    """Whether two died of one signal in one second: a table cannot say which of them came first."""
    ends = {(signal_of(each.head.sighting), each.head.line.at) for each in (one, other) if each.head}
    return len(ends) == 1 and None not in ends.pop()


def alike(case: LogCase, deaths: Sequence[Suspect]) -> list[Suspect]:
    """Joins ranks that raised the same at the same place, or crashed alike in the same second; and a
    nameless process with them, if only they wrote.
    """
    found: dict[object, Suspect] = {}
    for each in deaths:
        line = each.exceptions[-1] if each.exceptions and not each.hard else None
        said = line and (_VALUE.sub("", raised(line) or ""), own_frame(line.frames))
        head = found.setdefault(said or crash(each) or id(each), each)
        if head is not each:
            head.who |= each.who
            head.events += each.events
            head.exceptions += each.exceptions
    every = [e for e in found.values() if len(e.who) > 1 and case.logged <= {p.rank for p in e.who}]
    for name, one in [*found.items()]:
        nameless = one.head if one.one.rank is None and not one.exceptions else None
        if every and nameless and exit_of(nameless.sighting) == 1:
            every[0].events += found.pop(name).events
    return [*found.values()]


def crash(of: Suspect) -> object:
    """The signal that a program of its own sent itself, its launcher's file and the second, or the place."""
    head = of.head
    number = signal_of(head.sighting) if head else None
    if head is None or number not in _CRASHES:
        return None
    if head.line.at is None and head.line.form is Form.MPI:  # Hydra tells of all, mpirun of one of a run
        return (number, head.line.file) if head.id == "mpi-bad-termination" else None
    return number, head.line.file, head.line.number // 8 if head.line.at is None else -int(head.line.at)


def _table(case: LogCase, line: LogLine, death: Suspect) -> object:
    """The table of an entry; a file may have several of one host."""
    return line.file, death.one.host, (first := _first_of(case, line)) and first.number


def _first_of(case: LogCase, line: LogLine) -> LogLine | None:
    """The first failure of a table: its last entry or, in torch before 1.10, its first."""
    firsts = [each for each in case.first_failures.values() if each.file == line.file]
    below = [each for each in firsts if each.number >= line.number]
    return min(below or firsts, key=lambda each: each.number if below else -each.number, default=None)


def own_errors(case: LogCase, ranks: Collection[int | None]) -> dict[int, LogLine]:
    """The last error that each of these ranks logged, if it made no step after it."""
    own = [(each.rank, line) for each, line in case.odd if each.rank in ranks and line.form in LOGGED]
    return {rank: line for rank, line in own if rank is not None and line.level in ("ERROR", "FATAL")}


def raised(line: LogLine) -> str | None:
    """The exception in the last line of a traceback: "ValueError: shard 0017 is empty"."""
    if line.form is not Form.PYTHON:
        return None
    found = _EXCEPTION.search(line.text[:2000]) or (line.frames and _ANY_NAME.search(line.text[:2000]))
    if not found:
        return None
    said, own = found[found.lastindex or 0].strip(), own_frame(line.frames)
    place = PLACE.search(said)
    if own and place and own[0] != place["file"]:
        where = f" ({own[0]}:{own[1]}, raised in {'/'.join(place['file'].split('/')[-2:])}:{place['line']})"
        return f"{said[: place.start()][: max(320 - len(where), 200)]}{where}"
    return said[:340]
