"""Reads logs, judges them and writes the report in every requested form."""

from __future__ import annotations

import io
import os
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timezone
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from doctor.errors import UsageError
from doctor.exam.progress import progress_line
from doctor.exam.request import Request
from doctor.exam.way import way_to
from doctor.logs.explanation import Explanation
from doctor.logs.inputs import STDIN
from doctor.logs.judge import JobFacts, known_of
from doctor.logs.judge.jobs import conclude_all
from doctor.logs.loss.collect import LossCollector
from doctor.logs.loss.judge import judge_curves
from doctor.logs.model import LogOutcome, Logs
from doctor.logs.naming import common_folder, renamed, without_folder
from doctor.logs.options import LogWishes
from doctor.logs.read import read
from doctor.logs.report import page_of
from doctor.logs.search import LogSearch, in_folders, read_a_job
from doctor.logs.symptoms.match import Matcher, matcher_of
from doctor.model import MissingFact
from doctor.report.out.pages import show_page, terminal_of, write_page
from doctor.stage import Stage, Tell
from doctor.text.announce import announce
from doctor.text.redact import redact
from doctor.text.terminal import put
from doctor.transport.way import Way

if TYPE_CHECKING:
    from doctor.job.ranktable import RankTable
    from doctor.judge.verdict import Report
    from doctor.logs.prove import ProofExam


MEGA = 1 << 20


@dataclass(frozen=True, slots=True)
class LogOrigin:
    """The hosts that logs were fetched from."""

    hosts: tuple[str, ...] = ()
    silent: Mapping[str, str] = field(default_factory=dict)
    missed: tuple[str, ...] = ()
    """Logs on the hosts that could not be read, each with its reason."""
    named: Callable[[Logs], Logs] | None = None
    """Renames files to the names that they have on their hosts."""
    transport: str = ""
    asked: tuple[str, ...] = ()
    """All hosts that were asked."""
    search: LogSearch | None = None
    environ: Mapping[str, str] = field(default_factory=dict)
    """Names the job of Slurm whose nodes srun reached."""


def refuse_outputs(request: Request, wishes: LogWishes, paths: Sequence[str]) -> None:
    """Refuse, before anything is read, unwritable outputs and those that would overwrite a log."""
    if not any(request.outputs.files()):
        return
    from doctor.report.out.outputs import refuse_unwritable

    read = [("a log", Path(path)) for path in paths if path != STDIN]
    if wishes.recording is not None:
        read.append(("--recording", wishes.recording))
    refuse_unwritable(request.outputs, {}, (*request.inputs(), *read))


def explain_logs(
    paths: Sequence[str],
    request: Request,
    wishes: LogWishes,
    *,
    pasted: str = "",
    fetched: LogOrigin | None = None,
    check: Request | None = None,
) -> int:
    """The exit code: 1 if a cause is named, 0 if nothing complains, 3 if neither or if nothing was read.

    `check` is the request for the checks that prove the cause, with the hosts to run them on.
    """
    explained, report = explanation_of(paths, request, wishes, pasted=pasted, fetched=fetched, check=check)
    if check is not None and explained.conclusion.outcome is not LogOutcome.NAMED:
        announce("no cause is named, so no check was run on the hosts.")
    _deliver(explained, report, request)
    return explained.exit_code


def explanation_of(
    paths: Sequence[str],
    request: Request,
    wishes: LogWishes,
    *,
    pasted: str = "",
    fetched: LogOrigin | None = None,
    check: Request | None = None,
) -> tuple[Explanation, Report | None]:
    """What the logs show, and the report of the checks that prove it, if some were run."""
    known = _known_job(request, wishes)
    started = datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
    began = time.monotonic()
    matcher = matcher_of(wishes.symptoms, request.what.checks)
    deadline = request.way.deadline if fetched is None else None  # with hosts, it is a limit on fetching
    logs = _read(paths, pasted, matcher, request, deadline, apart=fetched is not None)
    source = fetched or LogOrigin()
    folder = "" if source.named else common_folder(logs)
    logs = source.named(logs) if source.named else without_folder(logs, folder)
    logs = renamed(logs, lru_cache(maxsize=None)(redact))
    if source.missed:
        logs = replace(logs, missed=True, left_out=(*map(redact, source.missed), *logs.left_out))
    conclusion = conclude_all(logs, known, lambda job: judge_curves(job.curves, matcher.symptoms))
    search = source.search if fetched else in_folders(paths)
    if search and ((fetched and {*source.asked} <= source.silent.keys()) or read_a_job(logs, search)):
        search = None
    if search and conclusion.outcome is LogOutcome.CLEAN:
        conclusion = replace(conclusion, outcome=LogOutcome.UNKNOWN)
    explained = Explanation(
        conclusion,
        logs,
        command=request.command,
        started=started,
        seconds=round(time.monotonic() - began, 3),
        way=_way(request, source),
        fetched=source.hosts,
        asked=source.asked,
        in_vain=search,
        transport=source.transport,
        silent=source.silent,
        folder=redact(folder),
    )
    report = None
    if check is not None and conclusion.outcome is LogOutcome.NAMED:
        from doctor.logs.prove import proofs

        left = None if deadline is None else max(0.1, deadline - (time.monotonic() - began))
        way = replace(check.way, deadline=left) if left else check.way
        seen = _examined(explained, replace(check, way=way))
        explained = replace(explained, proofs=proofs(explained, seen))
        report = seen.report if seen else None
    return explained, report


def _read(
    paths: Sequence[str],
    pasted: str,
    matcher: Matcher,
    request: Request,
    deadline: float | None,
    *,
    apart: bool,
) -> Logs:
    given: list[Path | BinaryIO] = [sys.stdin.buffer if path == STDIN else Path(path) for path in paths]
    if pasted:
        given.append(io.BytesIO(pasted.encode("utf-8", "surrogateescape")))
    drawn = progress_line(request.outputs)
    line = _ReadingLine(drawn)
    try:
        return read(
            given,
            matcher,
            loss=LossCollector,
            deadline=deadline,
            apart=apart,
            seen=line.seen,
            moved=None if request.outputs.quiet else line.moved,
        )
    finally:
        drawn.clear()


class _ReadingLine:
    """The progress of reading: the file, and how much of everything was read."""

    def __init__(self, line: Tell) -> None:
        self._line = line
        self._files = self._done = self._of = 0
        self._name = ""

    def seen(self, name: str) -> None:
        self._files += 1
        self._name = redact(os.path.basename(name))[-60:]
        self._show()

    def moved(self, done: int, of: int) -> None:
        self._done, self._of = done, max(of, done) if of else 0
        self._show()

    def _show(self) -> None:
        of = f" of {self._of / MEGA:,.1f}" if self._of else ""
        says = f"{self._done / MEGA:,.1f}{of} MB  file {self._files:,}: {self._name}"
        self._line(Stage("logs", says, self._done, self._of, moves=self._files, patient=True))


def _known_job(request: Request, wishes: LogWishes) -> JobFacts:
    """The facts about the job that are not from logs: a rank table, and the hosts of a recording."""
    tables: list[RankTable] = []
    if (path := request.who.rank_table) is not None:
        from doctor.job.ranktable import read_table
        from doctor.targets.inventory import table_file

        table, flaws = read_table(table_file(path, str(path)).text)
        if table is None:
            raise UsageError(
                f"--rank-table {path}: {flaws[0].message if flaws else 'is not a rank table'}.",
                f"`doctor ranktable check {path}` says more.",
            )
        tables.append(table)
    if wishes.recording is None:
        return known_of(tables=tables)
    from doctor.facts.network import ADDRESSES
    from doctor.judge.reading import read_recording
    from doctor.judge.run_facts import clock_offsets
    from doctor.recording import load

    reading = read_recording(load(wishes.recording))
    facts, names = reading.facts, reading.plan.names
    clocks = clock_offsets(reading.recording, facts)
    addresses: dict[str, list[str]] = {}
    offsets: dict[str, float] = {}
    for name in names:
        seen, clock = facts.get(name, ADDRESSES), clocks.get(name)
        if not isinstance(seen, MissingFact):
            addresses[name] = [each for some in seen.values() for each in some if not each.startswith("127.")]
        if clock is not None:
            offsets[name] = (clock.low + clock.high) / 2
    return known_of(reading.plan, tables, addresses, offsets)


def _way(request: Request, source: LogOrigin) -> Way:
    """How suggested commands reach the hosts: with the options of this command line."""
    who = replace(request.who, hosts=(), rank_table=None)
    return way_to(replace(request, who=who), transport=source.transport, environ=source.environ)


def _examined(explained: Explanation, request: Request) -> ProofExam | None:
    if explained.master_port is not None and request.job.master_port is None:
        request = replace(request, job=replace(request.job, master_port=explained.master_port))
    from doctor.logs.prove import examined

    return examined(request, explained)


def _deliver(explained: Explanation, report: Report | None, request: Request) -> None:
    """Write the report, to the terminal first."""
    outputs, page = request.outputs, page_of(explained)
    show_page(page, outputs)
    if report is not None and outputs.verbose:
        from doctor.report.out.outputs import show as show_report

        out = terminal_of(outputs)
        put("\n", out)
        show_report(report, outputs, out)
    if any(outputs.files()):
        from doctor.logs.report_json import logs_report

        write_page(page, outputs, logs_report(explained, report))
