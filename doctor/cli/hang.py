"""`doctor hang`: the job that runs on the hosts right now, and the rank that everybody waits for."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import TextIO

from doctor.cli.defaults import with_defaults
from doctor.cli.hangcheck import examine_below, suggested
from doctor.cli.reached import Reached, reach
from doctor.cli.slurmjob import of_slurm
from doctor.cli.watch import judged, narrowed, watch
from doctor.errors import DoctorError
from doctor.hang.asked import HangWishes
from doctor.hang.evidence import Evidence
from doctor.hang.judge import Judgement
from doctor.hang.report import print_judgement
from doctor.hang.report_json import hang_report
from doctor.hang.run import Sight
from doctor.hang.saved import encoded, load
from doctor.judge.verdict import Report
from doctor.model import Unreached
from doctor.report.formats import STDOUT
from doctor.report.outputs import refuse_unwritable, write_formats
from doctor.report.outputs import show as show_report
from doctor.run.request import Request
from doctor.text.console import drawn
from doctor.text.nodeset import fold, quoted
from doctor.text.outfile import write_file
from doctor.text.printable import clean_line
from doctor.text.terminal import coloured, put, tell, width


def hang(request: Request, wishes: HangWishes) -> int:
    """The exit code: 1 a culprit is named, 0 the job moves, 3 it is not decided, or there is no job."""
    refuse_unwritable(request.outputs, {"--save": request.save}, request.inputs())
    request = with_defaults(request)
    if request.defaults and not request.outputs.quiet:
        tell(f"doctor: defaults from {clean_line(request.defaults)}\n")
    if request.replay:
        evidence = load(request.replay)
        return _told(Sight(evidence), judged(evidence, wishes), request, None)
    environ: Mapping[str, str] = os.environ
    if wishes.slurm_job is not None:
        request, wishes, environ = of_slurm(request, wishes)
    reached = reach(request, environ)
    try:
        sight, judgement = _looked(reached, wishes)
        if not wishes.check:
            reached.close()
        return _told(sight, judgement, request, reached if wishes.check else None)
    finally:
        reached.close()


def _looked(reached: Reached, wishes: HangWishes) -> tuple[Sight, Judgement]:
    look = partial(reached.see, wishes.apart, lambda evidence: narrowed(evidence, wishes))
    if wishes.watch:
        quiet = reached.request.outputs.quiet
        return watch(look, wishes, reached.line, quiet=quiet, until=reached.until)
    sight = look()
    return sight, judged(sight.evidence, wishes)


def _told(sight: Sight, judgement: Judgement, request: Request, reached: Reached | None) -> int:
    """`reached`: hosts that are to be examined below Python, if that is suggested."""
    if request.save is not None:
        _write(request.save, encoded(sight.evidence))
    if reached is not None:
        reached.line.clear()
    outputs = request.outputs
    out = sys.stderr if any(path == STDOUT for _, path in outputs.files()) else sys.stdout
    show = partial(print_judgement, judgement, verbose=outputs.verbose, quiet=outputs.quiet)
    put(drawn(show, width(out), colour=coloured(out, outputs.colours)), out, drawn=True)
    if judgement.job is None:
        _tell_unread(sight.evidence)
    _tell_remedies(sight.reasons)
    checked = _examined(judgement, reached, out) if reached is not None else None
    report = hang_report(judgement, sight.evidence, checked)
    write_formats(outputs, report)
    return report.exit_code


def _examined(judgement: Judgement, reached: Reached, out: TextIO) -> Report | None:
    asked = suggested(judgement)
    if asked is None:
        several = sum(suggested(one) is not None for one in judgement.each) > 1
        why = (
            "several jobs ask for one: choose a job"
            if several
            else "what was seen does not point below Python"
        )
        tell(f"doctor: no check applies: {why}.\n")
        return None
    tell(f"doctor: now what doctor check {quoted(asked.hosts)} --only {','.join(asked.only)} finds:\n")
    report = examine_below(asked, reached)
    show_report(report, reached.request.outputs, out)
    return report


def _tell_unread(evidence: Evidence) -> None:
    """Why a job may not have been found."""
    hosts: dict[str, list[str]] = {}
    for seen in evidence.hosts:
        for why in seen.unread:
            hosts.setdefault(why, []).append(seen.host)
    for why, names in hosts.items():
        tell(f"doctor: {clean_line(fold(names))}: {clean_line(why)}\n")


def _write(path: Path, data: bytes) -> None:
    try:
        write_file(path, data)
    except OSError as error:
        raise DoctorError(f"{path} could not be written: {error.strerror}.") from None


def _tell_remedies(reasons: Mapping[str, Unreached]) -> None:
    """What to do about hosts that could not be asked; alike ones once."""
    alike: dict[str, list[Unreached]] = {}
    for why in reasons.values():
        alike.setdefault(why.remedy, []).append(why)
    for remedy, all_of in alike.items():
        names = fold([why.host for why in all_of])
        tell(f"doctor: {clean_line(names)}: {clean_line(remedy)}\n")
        for command in all_of[0].commands:
            tell(f"        {clean_line(command)}\n")
