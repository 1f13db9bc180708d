"""`doctor hang`: finds the rank for which the job that runs on the hosts waits."""

from collections.abc import Collection, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TextIO

from msgspec import structs

from doctor.cli.defaults import with_defaults
from doctor.errors import DoctorError, UsageError
from doctor.exam.host_session import HostSession, open_session
from doctor.exam.notify import notified
from doctor.exam.request import Request
from doctor.exam.slurm_job import of_slurm
from doctor.hang.below import sentence, with_checks
from doctor.hang.check import examine_below, suggested
from doctor.hang.judge import Judgement, judged
from doctor.hang.options import HangWishes
from doctor.hang.report import page_of
from doctor.hang.report_json import hang_report
from doctor.hang.watch import watch
from doctor.judge.verdict import Report
from doctor.live.evidence import LiveEvidence
from doctor.live.evidence_file import encoded, load
from doctor.live.look import look_at
from doctor.live.pyspy import check_given
from doctor.live.sight import Sight
from doctor.model import UnreachedHost, UnreachedKind
from doctor.report.out.outputs import refuse_unwritable
from doctor.report.out.outputs import show as show_report
from doctor.report.out.pages import show_page, terminal_of, write_page
from doctor.report.terminal.cards import print_page
from doctor.text.announce import announce
from doctor.text.console import drawn
from doctor.text.grouped import grouped
from doctor.text.nodeset import fold, quoted
from doctor.text.outfile import write_file
from doctor.text.printable import clean_line
from doctor.text.speech import spoken_command
from doctor.text.spelling import probably
from doctor.text.terminal import WIDTH, put, tell


def hang(request: Request, wishes: HangWishes) -> int:
    """The exit code: 1 if a culprit is named, 0 if the job moves, 3 if it is undecided or there is no job."""
    given = (("--pyspy", path) for path in wishes.pyspy)
    refuse_unwritable(request.outputs, {"--save": request.save}, (*request.inputs(), *given))
    check_given(wishes.pyspy)
    if wishes.notify and not wishes.watch:
        raise UsageError("--notify tells that a watched job hangs or has ended.", "Type --watch too.")
    request = with_defaults(request, in_report=False)
    if request.replay:
        evidence = load(request.replay)
        evidence = structs.replace(evidence, choice=wishes.choice(evidence.choice))
        return _report(Sight(evidence), judged(evidence), request, None)
    request, environ, number = of_slurm(request)
    wishes = replace(wishes, slurm_job=number)
    session = open_session(request, environ)
    try:
        sight, judgement, changed = _look(session, wishes)
        if not wishes.check:
            session.close()
        code = _report(sight, judgement, request, session if wishes.check else None)
        if wishes.notify and changed:
            page = partial(print_page, page_of(judgement))
            notified(wishes.notify, judgement.sentence, drawn(page, WIDTH, colour=False))
        return code
    finally:
        session.close()


def _look(session: HostSession, wishes: HangWishes) -> tuple[Sight, Judgement, bool]:
    look = partial(look_at, session, wishes, apart=wishes.apart)
    if wishes.watch:
        return watch(look, wishes, session.line, quiet=session.request.outputs.quiet, until=session.until)
    sight = look()
    return sight, judged(sight.evidence), False


def _report(sight: Sight, judgement: Judgement, request: Request, session: HostSession | None) -> int:
    """Shows and writes the report. With a `session`, the hosts are examined below Python if the judgement
    suggests it.
    """
    if request.save is not None:
        write_evidence(request.save, encoded(sight.evidence))
    if session is not None:
        session.line.clear()
    outputs = request.outputs
    show_page(page_of(judgement, apart=outputs.verbose), outputs)
    if judgement.job is None:
        tell_unread(sight.evidence)
    tell_remedies(sight.reasons, sight.evidence.asked)
    checked = _examine(judgement, session, terminal_of(outputs)) if session is not None else None
    report = hang_report(judgement, sight.evidence, checked)
    page = page_of(judgement)
    write_page(with_checks(page, checked) if checked else page, outputs, report)
    return report.exit_code


def _examine(judgement: Judgement, session: HostSession, out: TextIO) -> Report | None:
    asked = suggested(judgement)
    if asked is None:
        why = (
            "several jobs ask for one: choose a job"
            if sum(suggested(one) is not None for one in judgement.each) > 1
            else "what was seen does not point below Python"
        )
        announce(f"no check applies: {why}.")
        return None
    announce(f"the result of doctor check {quoted(asked.hosts)} --only {','.join(asked.only)}:")
    report = examine_below(asked, session)
    show_report(report, session.request.outputs, out)
    if not session.request.outputs.quiet:
        put(f"\n{clean_line(sentence(judgement.sentence, report))}\n", out)
    return report


def tell_unread(evidence: LiveEvidence) -> None:
    """Reports why a job may have been overlooked."""
    for why, names in grouped((why, seen.host) for seen in evidence.hosts for why in seen.unread).items():
        announce(f"{fold(names)}: {why}")


def write_evidence(path: Path, data: bytes) -> None:
    try:
        write_file(path, data)
    except OSError as error:
        raise DoctorError(f"{path} could not be written: {error.strerror}.") from None


def tell_remedies(reasons: Mapping[str, UnreachedHost], asked: Collection[str]) -> None:
    """Reports what to do about unreachable hosts; equal remedies once."""
    alike: dict[str, list[UnreachedHost]] = {}
    nameless = {host for host, why in reasons.items() if why.kind is UnreachedKind.NAME}
    for why in reasons.values():
        meant = probably(why.host, {*asked} - nameless) if why.host in nameless else ""
        alike.setdefault(f"Did you mean {meant}? {why.remedy}" if meant else why.remedy, []).append(why)
    for remedy, all_of in alike.items():
        announce(f"{fold([why.host for why in all_of])}: {remedy}")
        for command in all_of[0].commands:
            tell(f"        {clean_line(spoken_command(command))}\n")
