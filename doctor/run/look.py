"""A look at the ranks while nothing moves. `doctor hang` judges; a hang is named if two looks agree."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING

from doctor.errors import DoctorError
from doctor.exam.request import Request
from doctor.run.apart import Apart, apart
from doctor.run.output import Output
from doctor.run.pauses import LEAST, OutputPauses
from doctor.text.nodeset import fold

if TYPE_CHECKING:
    from doctor.hang.judge import Judgement
    from doctor.live.evidence import LiveEvidence

AGAIN = 10.0
"""Seconds from the first look that finds a hang to the second."""
MOST = 3
"""The most culprits that are named again at the end."""
LONGEST = 240.0
"""Seconds for a look."""
HANG, MOVES, WAITS, NO_JOB, FAILED = "hang", "moves", "waits", "no job", "failed"


@dataclass(frozen=True, slots=True)
class JobLook:
    """What `doctor hang` says. `files` are its report by suffix; `culprits` are hosts with PIDs."""

    state: str
    sentence: str
    culprits: frozenset[tuple[str, int | None]] = frozenset()
    text: str = ""
    files: dict[str, bytes] = field(default_factory=dict)
    elsewhere: tuple[RankElsewhere, ...] = ()
    """Its ranks that do not run below the command."""
    seen: str = ""
    """What the culprits did, if it hangs."""
    printed: str = ""
    """The cause that the job's own words name, if nothing else says why it stands still."""
    failed: bool = False
    """Whether they show that it failed."""

    @property
    def hangs(self) -> bool:
        return self.state == HANG

    @property
    def is_absent(self) -> bool:
        return self.state == NO_JOB

    @property
    def is_normal(self) -> bool:
        return self.state in (MOVES, WAITS)

    def confirms(self, other: JobLook) -> bool:
        """Whether both looks find the same."""
        alike = self.state == other.state
        return alike and (not self.hangs or not self.culprits or bool(self.culprits & other.culprits))


class Watcher:
    """Decides when to look, and what two looks say together. `ask` makes a look."""

    def __init__(self, pauses: OutputPauses, ask: Callable[[float], Apart[JobLook]]) -> None:
        self._pauses, self._ask = pauses, ask
        self._child: Apart[JobLook] | None = None
        self._began = 0.0
        self._first: JobLook | None = None
        self._next: float | None = None
        """When to look again; None if that depends on the limit."""
        self._told: JobLook | None = None

    def moved(self, now: float) -> None:
        """The job went on."""
        self._pauses.moved(now)
        self._first = self._next = self._told = None
        self.close()

    def close(self) -> None:
        if self._child is not None:
            self._child.end()
            self._child = None

    def found(self, now: float) -> JobLook | None:
        """News that two looks agree on, once for each standstill."""
        if self._child is None:
            due = (
                self._next if self._next is not None else now + self._pauses.limit - self._pauses.silent(now)
            )
            if now >= due:
                self._began = now
                self._child = self._ask(self._pauses.limit)
            return None
        if not self._child.poll():
            if now - self._began > LONGEST:
                self.close()
                self._later(now)
            return None
        child, self._child = self._child, None
        try:
            look = child.result()
        except DoctorError as error:
            look = JobLook(FAILED, error.message)
        return self._weighed(look, now)

    def _weighed(self, look: JobLook, now: float) -> JobLook | None:
        starting = look.is_absent and not look.failed and self._pauses.silent(now) < LEAST
        if look.is_normal or starting:
            self._first = None
            self._later(now, LEAST - self._pauses.silent(now) if starting else math.inf)
        elif self._first is None or not look.confirms(self._first):
            self._first, self._next = look, now + AGAIN
        else:
            self._later(now)
            if self._told is None or not look.confirms(self._told):
                self._told = look
                return look
        return None

    def _later(self, now: float, most: float = math.inf) -> None:
        """Look again when the silence is twice as long, or after `most` seconds."""
        self._next = now + min(self._pauses.silent(now), most)


def look(request: Request, below: int, output: Output, limit: float) -> Apart[JobLook]:
    """Look at the command's ranks on the hosts. `below` is its PID."""
    return Apart(partial(_look_and_read, request, below, output, limit))


def _look_and_read(request: Request, below: int, output: Output, limit: float) -> JobLook:
    from doctor.run.why import reason_of

    found = _look(replace(request, command="hang"), below, limit)
    if found.hangs or found.is_normal:
        return found
    reason = reason_of(request, output)
    return replace(found, printed=reason.says, failed=reason.failed) if reason.named else found


def _look(request: Request, below: int, limit: float) -> JobLook:
    from doctor.exam.host_session import open_session
    from doctor.hang.judge import judged
    from doctor.hang.judge.judgement import HangState
    from doctor.hang.report import page_of
    from doctor.hang.report_json import hang_report
    from doctor.hang.words import who
    from doctor.live.evidence_file import encoded
    from doctor.live.look import look_at
    from doctor.live.options import RunningJobWishes
    from doctor.run.own import own_command, own_part, own_pids
    from doctor.run.page_files import in_files

    quiet = replace(request, outputs=replace(request.outputs, quiet=True))
    with closing(open_session(quiet, os.environ)) as session:
        command = own_command(below, session.hosts, session.transport.name == "local", os.environ)
        choose = partial(own_pids, started=command.started)
        seen = look_at(session, RunningJobWishes(limit=limit), choose, command.told).evidence
    evidence = own_part(seen, command.started)
    found = judged(evidence)
    if found.verdict is HangState.NO_JOB:
        silent = f"; {fold(evidence.unreached)} did not answer" if evidence.unreached else ""
        return JobLook(NO_JOB, f"No rank of the command was found{silent}.")
    text, files = in_files(page_of(found), hang_report(found, evidence))
    files[".evidence.json"] = encoded(evidence)
    return JobLook(
        found.verdict.value,
        found.sentence,
        frozenset((each.host, each.pid) for each in found.culprits),
        text,
        files,
        ranks_elsewhere(found, evidence),
        "; ".join(f"{who((each,))}: {each.sentence}" for each in found.culprits[:MOST]),
    )


BY_THEMSELVES = 3.0
"""Seconds in which a launcher that was ended may end its own ranks."""


@dataclass(frozen=True, slots=True)
class RankElsewhere:
    """A rank on another host. If doctor ends the command, its launcher ends this one, or it is named."""

    host: str
    pid: int
    start: int
    """As in `JobMember`."""
    rank: int | None
    line: str
    """What ends it; empty if that is unknown."""

    @property
    def name(self) -> str:
        return f"rank {self.rank} on {self.host}" if self.rank is not None else f"{self.host} pid {self.pid}"


def ranks_elsewhere(found: Judgement, evidence: LiveEvidence) -> tuple[RankElsewhere, ...]:
    """The ranks of the command's job that do not run below the command."""
    from doctor.live.onhost.origin import BELOW
    from doctor.live.reach import reach_of

    if found.job is None:
        return ()
    reach = reach_of(evidence)
    return tuple(
        RankElsewhere(each.host, each.pid, each.start, each.rank, reach.on(each.host, f"kill {each.pid}"))
        for each in found.job.ranks
        if each.started != BELOW
    )


def left_elsewhere(request: Request, ranks: Sequence[RankElsewhere]) -> tuple[str, ...]:
    """What still runs, each in a sentence with the line that ends it."""
    if not ranks:
        return ()
    time.sleep(BY_THEMSELVES)
    try:
        return apart(partial(_left, request, ranks))
    except DoctorError as error:
        hosts = fold({each.host for each in ranks})
        return (f"ranks on {hosts} may still run: {error.message.rstrip('.')}",)


def _left(request: Request, ranks: Sequence[RankElsewhere]) -> tuple[str, ...]:
    from doctor.exam.host_session import open_session
    from doctor.live.look import look_at
    from doctor.live.options import RunningJobWishes

    quiet = replace(request, command="hang", outputs=replace(request.outputs, quiet=True))
    asked = {each.host for each in ranks}
    with closing(open_session(quiet, os.environ)) as session:
        session.hosts = tuple(host for host in session.hosts if host.name in asked)
        seen = look_at(session, RunningJobWishes(), lambda _: {}).evidence  # to find them is enough
    return tuple(still_runs(ranks, seen))


def still_runs(ranks: Sequence[RankElsewhere], evidence: LiveEvidence) -> Iterator[str]:
    answered = {host.host for host in evidence.hosts}
    there = {(each.host, each.pid, each.start) for host in evidence.hosts for each in host.members}
    for each in ranks:
        name = each.name if each.line else f"{each.name} (process {each.pid})"
        end = f"; to end it: {each.line}" if each.line else ""
        if each.host not in answered:
            yield f"{name} may still run: its host did not answer{end}"
        elif (each.host, each.pid, each.start) in there:
            yield f"{name} still runs{end}"
