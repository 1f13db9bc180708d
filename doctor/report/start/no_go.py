"""A no-go in three lines for the log of a job: what is wrong, where, and what to do next."""

from pathlib import Path

from doctor.judge.verdict import Report
from doctor.model import Finding, HostStatus, Status
from doctor.text.nodeset import fold
from doctor.text.printable import clean_line
from doctor.text.signalname import signal_name
from doctor.text.speech import sign, t

LONGEST = 400
"""The most characters of a line, whatever a host reported."""


def no_go(report: Report, whole: Path | None) -> str:
    """Three lines; `whole` is the file with the whole report."""
    # What decides the verdict, without consequences of others; causes come first.
    decisive = report.roots or [each for each in report.findings if report.rules.open(each)]
    then = _next(decisive if report.run.stopped_by is None else [], whole)
    what = t(_what(report, decisive))
    lines = (f"doctor: {t('no go')}{sign(': ')}{what}", t(_where(report, decisive)), t(then))
    return "".join(f"{_short(line if at == 0 else ' ' * 8 + line)}\n" for at, line in enumerate(lines))


def _what(report: Report, decisive: list[Finding]) -> str:
    if report.run.stopped_by is not None:
        return f"interrupted by {signal_name(report.run.stopped_by)} before the verdict."
    if not decisive:
        few = report.rules.need_hosts is not None
        why = next((host.reason for host in report.hosts if host.status is HostStatus.UNEXAMINED), None)
        said = "there are too few healthy hosts" if few else "not every host was examined"
        return f"{said}: {why}." if why else f"{said}."
    first, *more = decisive
    if report.rules.unread_on(first):
        return f"{report.npu_network_unread}."
    said = first.summary.rstrip(".")
    if report.training.not_made and first.check.startswith("smoke-"):
        return f"the smoke run was not made: {report.training.not_made}."
    if first.status is Status.UNKNOWN:
        said = f"it could not be decided: {first.reason.rstrip('.')}"
    if first.status is Status.CRASH:
        said = f"the check itself broke: {said}"
    others = len({finding.check for finding in more} - {first.check})
    also = f"; and {others} more" if others else ""
    return f"{first.check}: {said}{also}."


def _where(report: Report, decisive: list[Finding]) -> str:
    parts = []
    if decisive and report.run.stopped_by is None:
        first = decisive[0]
        subject = first.subject if first.subject and first.subject not in first.summary else ""
        place = ", ".join(filter(None, (first.nodeset, subject)))
        parts += [f"On {place}"] if place else []
    names = {
        status: [host.name for host in report.hosts if host.status is status]
        for status in (HostStatus.FAULTY, HostStatus.UNEXAMINED)
    }
    told = [f"{status.value} {fold(hosts)}" for status, hosts in names.items() if hosts]
    healthy = f"{len(report.healthy_hosts)} of {len(report.hosts)} hosts are healthy"
    if report.rules.need_hosts is not None:
        healthy += f", {report.rules.need_hosts} are needed"
    parts.append(healthy + (f" ({', '.join(told)})" if told else ""))
    return "; ".join(parts) + "."


def _next(decisive: list[Finding], whole: Path | None) -> str:
    steps = [f"doctor explain {decisive[0].check}"] if decisive else []
    steps += [f"the whole report is {whole}"] if whole else []
    return f"Next: {'; '.join(steps) or 'run it again'}"


def _short(line: str) -> str:
    line = clean_line(line)
    return line if len(line) <= LONGEST else line[: LONGEST - 1] + "…"
