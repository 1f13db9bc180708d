"""`doctor check`, `smoke`, `preflight`, `hang` and `facts`: one command line with the options of each."""

from __future__ import annotations

import os
import shutil
import signal
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

from doctor.cli.options import split
from doctor.errors import UsageError
from doctor.exam.request import ExamFlags, HostFlags, Request
from doctor.hang.options import HangWishes
from doctor.live.options import RunningJobWishes
from doctor.report.out.formats import Format, Outputs
from doctor.slow.options import SlowWishes
from doctor.text.announce import announce
from doctor.text.option import IN_JOB, REPLAY, any_option, option, refuse_conflicts
from doctor.text.speech import t
from doctor.text.terminal import put, tell

if TYPE_CHECKING:
    from doctor.exam.in_job.own_programs import Makers

INSIDE = ("bin/python", "python3", "python")
"""The place of the interpreter in a directory such as a virtual environment."""
GONE_IN = 15
"""The seconds after which a host that has lost its controller is clean."""


def examine(request: Request) -> int:
    from doctor.cli.defaults import with_defaults
    from doctor.report.out.outputs import empty_lists

    if not request.in_job:  # inside a job only rank 0 writes
        empty_lists(request.outputs, request.inputs())
    request = with_defaults(request)
    smoke = request.smoke
    if smoke.inject:
        from doctor.cli.faults import HELP, check_faults, listed

        faults = split(smoke.inject)
        if HELP in faults:
            put(f"{listed()}\n", sys.stdout)
            return 0
        check_faults(smoke.inject, faults, smoke.steps)
        smoke = replace(smoke, inject=faults)
    request = with_interpreter(replace(request, smoke=smoke))
    try:
        refuse_conflicts(request)
    except UsageError:
        empty_lists(request.outputs, request.inputs())
        raise
    from doctor.exam.examination import run_and_report

    return run_here(request, run_and_report)


@dataclass(frozen=True, slots=True)
class AgainWishes:
    again: Path | None = option("--again FILE", not_with=(IN_JOB, REPLAY), panel=HostFlags.PANEL)
    notify: str | None = option("--notify COMMAND", not_with=(IN_JOB, REPLAY), panel=Outputs.PANEL)


@dataclass(frozen=True, slots=True)
class AcceptWishes:
    floor: Path | None = any_option("--floor FILE", panel=ExamFlags.PANEL)
    paths: tuple[str, ...] = option("--path DIR", default=(), not_with=(REPLAY,), panel=ExamFlags.PANEL)
    soak: float | None = option(
        "--for TIME", not_with=(REPLAY,), panel=ExamFlags.PANEL, min=1, max=30 * 86_400
    )
    hosts_at_once: int | None = option("--hosts-at-once N", not_with=(REPLAY,), panel=ExamFlags.PANEL, min=2)
    csv: Path | None = any_option("--csv FILE", panel=Outputs.PANEL)
    certificate: Path | None = any_option("--certificate FILE", panel=Outputs.PANEL)


def accept(request: Request, wishes: AcceptWishes) -> int:
    from doctor.floors import read_floor
    from doctor.report.out.facts import collectives_csv

    more = [(Format("--csv", collectives_csv, stdout=True), wishes.csv)] if wishes.csv else []
    if path := wishes.certificate:
        more.append((_certificate(path, request.save or request.replay), path))
    refuse_conflicts(request, wishes)
    floor = read_floor(wishes.floor) if wishes.floor else None
    outputs = replace(request.outputs, more=tuple(more))
    request = replace(request, floor=floor, hosts_at_once=wishes.hosts_at_once)
    return examine(replace(request, paths=wishes.paths, soak=wishes.soak, outputs=outputs))


def _certificate(path: Path, recording: Path | None) -> Format:
    from doctor.report.out.formats import html_of, markdown_of
    from doctor.report.page.certificate import certificate_page
    from doctor.text.outfile import is_stream

    if recording is None or is_stream(recording):
        raise UsageError("A certificate names the recording of the run.", "Type --save FILE too.")

    def write(report: Any) -> bytes:
        page = certificate_page(report, sha256(recording.read_bytes()).hexdigest())
        return html_of(page) if path.suffix == ".html" else markdown_of(page)

    return Format("--certificate", write)


def check_hosts(request: Request, wishes: AgainWishes) -> int:
    if wishes.notify:
        refuse_conflicts(request, wishes)
        if request.outputs.report_dir is None:
            raise UsageError(
                "--notify tells what changed since the earlier runs of --report-dir.",
                "Type --report-dir DIR too.",
            )
        from doctor.history.changes import kept_and_told  # most runs tell nobody

        keep = partial(kept_and_told, wishes.notify)
        request = replace(request, outputs=replace(request.outputs, keep=keep))
    if wishes.again is None:
        return examine(request)
    from doctor.cli.defaults import with_defaults
    from doctor.exam.again import look_again
    from doctor.report.out.outputs import empty_lists

    empty_lists(request.outputs, [*request.inputs(), ("--again", wishes.again)])
    refuse_conflicts(request, wishes)
    return to_its_end(partial(look_again, with_defaults(with_interpreter(request)), wishes.again))


@dataclass(frozen=True, slots=True)
class FactsWishes:
    csv: Path | None = any_option("--csv FILE", "The facts as CSV; - is stdout.", panel=Outputs.PANEL)


def ask_facts(request: Request, wishes: FactsWishes) -> int:
    refuse_conflicts(request, wishes)
    from doctor.cli.facts import tell_facts

    return run_here(with_interpreter(request), partial(tell_facts, csv=wishes.csv))


def ask_hang(request: Request, wishes: HangWishes) -> int:
    from doctor.cli.hang import hang

    def own(request: Request) -> Makers:
        from doctor.live.on_rank import own_agent

        return own_agent(request, wishes)

    return run_here(_of_a_job(request, wishes), partial(hang, wishes=wishes), own)


def ask_slow(request: Request, wishes: SlowWishes) -> int:
    from doctor.cli.slow import slow

    def own(request: Request) -> Makers:
        from doctor.slow.on_rank import own_sampler

        return own_sampler(request, wishes)

    return run_here(_of_a_job(request, wishes), partial(slow, wishes=wishes), own)


def _of_a_job(request: Request, wishes: RunningJobWishes) -> Request:
    """The request of a command about a running job, if its options fit together."""
    refuse_conflicts(request, wishes)
    if wishes.slurm_job is not None:  # inside a job it only chooses
        from doctor.transport.slurm.squeue import check_number

        check_number(wishes.slurm_job)
        request = replace(request, who=replace(request.who, slurm_job=wishes.slurm_job))
    return with_interpreter(request)


def run_here(
    request: Request, run: Callable[[Request], int], own: Callable[[Request], Makers] = lambda _: {}
) -> int:
    """The exit code of a command, which inside a job rank 0 runs. `own`: as in `in_job`."""
    if request.in_job:
        from doctor.exam.in_job import in_job

        run = partial(in_job, command=run, own=own)
    return to_its_end(partial(run, request))


def to_its_end(run: Callable[[], int]) -> int:
    """The exit code of a run, even if it is interrupted before its report."""
    try:
        return run()
    except KeyboardInterrupt as stop:  # a second one, or one outside the run
        announce("interrupted before the report was made.")
        tell(f"        {t(f'What it started on the hosts ends there by itself within {GONE_IN} s.')}\n")
        return 128 + getattr(stop, "number", int(signal.SIGINT))


def with_interpreter(request: Request) -> Request:
    """The request with the whole path of --python, if it was given."""
    if (python := request.smoke.python) is None:
        return request
    return replace(request, smoke=replace(request.smoke, python=interpreter(python, request.who.local)))


def interpreter(path: str, local: bool) -> str:
    """The interpreter. A relative path is valid only here: hosts run programs in another folder."""
    if not path.strip():
        raise UsageError("--python names no interpreter.", "For instance --python /opt/train/bin/python.")
    if path.startswith("~"):
        whole = os.path.expanduser(path)
        raise UsageError(f"--python {path}: ~ is not expanded on the hosts.", f"Here it is {whole}.")
    if path.endswith("/") or (os.path.isdir(path) and shutil.which(path) is None):
        elsewhere = "" if os.path.isdir(path) else "python3"
        inside = next((each for each in INSIDE if os.path.isfile(os.path.join(path, each))), elsewhere)
        given = os.path.join(path, inside) if inside else "for instance /opt/train/bin/python"
        raise UsageError(f"--python {path} is a directory.", f"Give the program: {given}.")
    if "/" not in path or path.startswith("/"):
        return path
    here = os.path.abspath(path)  # links are not resolved: a virtual environment is found by its own link
    if local:
        return here
    raise UsageError(f"--python {path}: give the whole path, as it is on the hosts.", f"Here it is {here}.")
