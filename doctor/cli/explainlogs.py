"""`doctor explain FILE…`: logs are read, judged and shown, in every form that was asked for."""

from __future__ import annotations

import gc
import io
import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime, timezone
from functools import lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from doctor.cli.symptoms import matcher_of
from doctor.errors import DoctorError, UsageError
from doctor.job.ranktable import RankTable, read_table
from doctor.job.wishes import JobWishes
from doctor.logs.explained import Explained
from doctor.logs.given import STDIN
from doctor.logs.judge import Known, known_of
from doctor.logs.judge.jobs import conclude_all
from doctor.logs.loss.collect import LossCollector
from doctor.logs.loss.judge import judge_curves
from doctor.logs.model import Logs, Outcome
from doctor.logs.naming import common_folder, renamed, without_folder
from doctor.logs.read import read
from doctor.logs.report import print_explained
from doctor.logs.symptoms.match import Matcher
from doctor.model import Missing
from doctor.report.formats import STDOUT
from doctor.run.progress import progress_line
from doctor.run.request import Request
from doctor.run.way import way_of
from doctor.stage import Stage
from doctor.targets.inventory import COMMAND_LINE, Targets, table_file
from doctor.text.console import drawn
from doctor.text.outfile import write_file
from doctor.text.redact import redact
from doctor.text.terminal import coloured, put, tell, width
from doctor.transport.way import Way

if TYPE_CHECKING:
    from doctor.cli.prove import Examined
    from doctor.judge.verdict import Report


@dataclass(frozen=True, slots=True)
class ExplainWishes:
    """What a person asks of `doctor explain` and `doctor logs`, beside the options of every command."""

    symptoms: tuple[Path, ...] = ()
    recording: Path | None = None
    run: str | None = None
    """The hosts on which the checks are to be made."""
    run_there: bool = False
    """On the hosts of the request."""


@dataclass(frozen=True, slots=True)
class Fetched:
    """Where logs came from, if they were fetched."""

    hosts: tuple[str, ...] = ()
    silent: Mapping[str, str] = field(default_factory=dict)
    missed: tuple[str, ...] = ()
    """Logs there that could not be read, each with its reason."""
    named: Callable[[Logs], Logs] | None = None
    """Gives files the names that they have on their hosts."""


def refuse_outputs(request: Request, wishes: ExplainWishes, paths: Sequence[str]) -> None:
    """Before anything is read: also a report that would overwrite a log."""
    if not any(request.outputs.files()):
        return
    from doctor.report.outputs import refuse_unwritable

    read = [("a log", Path(path)) for path in paths if path != STDIN]
    if wishes.recording is not None:
        read.append(("--recording", wishes.recording))
    refuse_unwritable(request.outputs, {}, (*request.inputs(), *read))


def explain_logs(
    paths: Sequence[str],
    request: Request,
    wishes: ExplainWishes,
    *,
    pasted: str = "",
    fetched: Fetched | None = None,
) -> int:
    """The exit code: 1 a cause is named, 0 nothing complains, 3 it is not known, or nothing was read."""
    gc.set_threshold(100_000, 50, 50)  # the start and reading make many values that stay, and no cycles
    known = _known(request, wishes)
    started = datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
    began = time.monotonic()
    matcher = matcher_of(wishes.symptoms, request.what.checks)
    deadline = request.way.deadline if fetched is None else None  # of fetched ones, that was for the hosts
    logs = _read(paths, pasted, matcher, request, deadline, apart=fetched is not None)
    source = fetched or Fetched()
    folder = "" if source.named else common_folder(logs)
    logs = source.named(logs) if source.named else without_folder(logs, folder)
    logs = renamed(logs, lru_cache(maxsize=None)(redact))
    if source.missed:
        logs = replace(logs, missed=True, left_out=(*map(redact, source.missed), *logs.left_out))
    conclusion = conclude_all(logs, known, lambda job: judge_curves(job.curves, matcher.symptoms))
    explained = Explained(
        conclusion,
        logs,
        command=request.command,
        started=started,
        seconds=round(time.monotonic() - began, 3),
        way=_way(request),
        fetched=source.hosts,
        silent=source.silent,
        folder=redact(folder),
    )
    report = None
    asked = wishes.run is not None or wishes.run_there
    if asked and conclusion.outcome is not Outcome.NAMED:
        tell("doctor: no cause is named, so no check was made on the hosts.\n")
    elif asked:
        from doctor.cli.prove import proofs

        left = None if deadline is None else max(0.1, deadline - (time.monotonic() - began))
        way = replace(request.way, deadline=left) if left else request.way
        seen = _examined(explained, replace(request, way=way), wishes.run)
        explained = replace(explained, proofs=proofs(explained, seen))
        report = seen.report if seen else None
    _deliver(explained, report, request)
    return explained.exit_code


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
    with _progress(request) as tell_file:
        return read(given, matcher, loss=LossCollector, deadline=deadline, apart=apart, seen=tell_file)


@contextmanager
def _progress(request: Request) -> Iterator[Callable[[str], None]]:
    line = progress_line(request.outputs)
    number = 0

    def next_file(name: str) -> None:
        nonlocal number
        number += 1
        line(Stage("logs", f"file {number}: {redact(os.path.basename(name))[-60:]}", moves=number))

    try:
        yield next_file
    finally:
        line.clear()


def _known(request: Request, wishes: ExplainWishes) -> Known:
    """What else is known of the job: a rank table, and the hosts of a recording."""
    tables: list[RankTable] = []
    if (path := request.who.rank_table) is not None:
        file = table_file(path, str(path))
        table, flaws = read_table(file.text)
        if table is None:
            raise UsageError(
                f"--rank-table {path}: {flaws[0].message if flaws else 'is no rank table'}.",
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
        if not isinstance(seen, Missing):
            addresses[name] = [each for some in seen.values() for each in some if not each.startswith("127.")]
        if clock is not None:
            offsets[name] = (clock.low + clock.high) / 2
    return known_of(reading.plan, tables, addresses, offsets)


def _way(request: Request) -> Way:
    """How the commands that are suggested reach the hosts: as this command line says."""
    who = replace(request.who, hosts=(), rank_table=None)
    return way_of(replace(request, who=who), Targets((), COMMAND_LINE, False, JobWishes()), "ssh")


def _examined(explained: Explained, request: Request, hosts: str | None) -> Examined | None:
    if hosts is not None:
        request = replace(request, who=replace(request.who, hosts=(hosts,)))
    if explained.master_port is not None and request.job.master_port is None:
        request = replace(request, job=replace(request.job, master_port=explained.master_port))
    from doctor.cli.prove import examined

    return examined(request, explained)


def _made(option: str, explained: Explained) -> bytes:
    """A page draws what takes long to import."""
    if option == "--json":
        from doctor.logs.report_json import as_json

        return as_json(explained)
    if option == "--markdown":
        from doctor.logs.report_markdown import as_markdown

        return as_markdown(explained)
    from doctor.logs.report_html import as_html

    return as_html(explained)


def _deliver(explained: Explained, report: Report | None, request: Request) -> None:
    """The terminal first; a file that cannot be written loses only itself."""
    outputs = request.outputs
    files = [(form.option, path) for form, path in outputs.files()]
    taken = any(path == STDOUT for _, path in files)
    out = sys.stderr if taken else sys.stdout
    show = partial(print_explained, explained, verbose=outputs.verbose, quiet=outputs.quiet)
    put(drawn(show, width(out), colour=coloured(out, outputs.colours)), out, drawn=True)
    if report is not None and outputs.verbose:
        from doctor.report.outputs import show as show_report

        put("\n", out)
        show_report(report, outputs, out)
    failed = []
    for option, path in files:
        data = _made(option, explained)
        if path == STDOUT:
            put(data.decode(), sys.stdout)
            continue
        try:
            write_file(path, data)
        except OSError as error:
            failed.append(f"{path} could not be written: {error.strerror}.")
    if failed:
        raise DoctorError("\n".join(failed))
