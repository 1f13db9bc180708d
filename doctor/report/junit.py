"""The report as JUnit XML, for Jenkins and GitLab: a suite a host, a test case a check.

Both group cases by their class, Jenkins with the number of failed ones and since which build. So a class is a
host, and their list is that of the machines to look at. A name holds no device and no number: one case is the
same in every run. GitLab shows the text of an element, Jenkins also its message.

What was not decided is not a pass, and neither is a warning, but neither breaks a build: both are skipped,
with the reason. The first case is the verdict: it passes if the exit code is 0.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from xml.etree import ElementTree as Xml

from doctor.judge.verdict import HostReport, Report
from doctor.model import Finding, HostStatus, Status, Verdict
from doctor.report.details import commands, details, evidence
from doctor.report.headline import culprit, last_line, title, word
from doctor.report.outcomes import NO_HOST, Outcome, outcomes
from doctor.report.when import began
from doctor.text.printable import clean, clean_line

NAME = "cluster-doctor"
ALL_HOSTS = "all hosts"
"""The suite of the verdict, and of what is wrong with no single host."""
FAILURE, ERROR, SKIPPED = "failure", "error", "skipped"
KINDS = {Status.FAIL: FAILURE, Status.CRASH: ERROR}


@dataclass(frozen=True, slots=True)
class _Case:
    """A test case. Without a `kind` it passed."""

    name: str
    kind: str = ""
    type: str = ""
    message: str = ""
    text: str = ""


def as_junit(report: Report) -> bytes:
    root = Xml.Element("testsuites", name=NAME, time=f"{report.run.seconds:.3f}")
    table, told = outcomes(report), _told(report)
    hosts = {host.name: _examined(host) for host in report.hosts}
    whole = [_verdict(report), *_unloaded(report), *_cases(report, told, table.get(NO_HOST, {}))]
    _add_suite(root, report, ALL_HOSTS, whole)
    for host, row in table.items():
        if host != NO_HOST:
            first = [hosts[host]] if host in hosts else []
            _add_suite(root, report, host, [*first, *_cases(report, told, row)])
    for count in ("tests", "failures", "errors"):
        root.set(count, str(sum(int(suite.get(count, "0")) for suite in root)))
    Xml.indent(root, " ")
    text: str = Xml.tostring(root, "unicode")
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{text}\n'.encode()


def _add_suite(root: Xml.Element, report: Report, host: str, cases: Iterable[_Case]) -> None:
    name = clean_line(host)
    suite = Xml.SubElement(root, "testsuite", name=name)
    if begin := began(report):
        suite.set("timestamp", f"{begin:%Y-%m-%dT%H:%M:%S}")
    if host != ALL_HOSTS:
        suite.set("hostname", name)
    group = f"{NAME}.{name.replace('.', '·')}"  # Jenkins takes what is before the last dot for a package
    counts = dict.fromkeys((FAILURE, ERROR, SKIPPED), 0)
    for case in cases:
        element = Xml.SubElement(suite, "testcase", classname=group, name=clean_line(case.name))
        if case.kind:
            counts[case.kind] += 1
            ended = Xml.SubElement(element, case.kind, type=case.type, message=clean_line(case.message))
            ended.text = clean("\n".join(filter(None, (case.message, case.text))))
    suite.set("tests", str(len(suite)))
    suite.set("failures", str(counts[FAILURE]))
    suite.set("errors", str(counts[ERROR]))
    suite.set("skipped", str(counts[SKIPPED]))


def _verdict(report: Report) -> _Case:
    if report.exit_code == 0:
        return _Case("verdict")
    kind = FAILURE if report.verdict is Verdict.FAULTY else ERROR
    return _Case("verdict", kind, report.verdict.value, last_line(report), f"exit code {report.exit_code}")


def _unloaded(report: Report) -> Iterator[_Case]:
    for number, source in enumerate(report.rules.unloaded, 1):
        yield _Case(f"checks not loaded {number}", ERROR, "not-loaded", source)


def _examined(host: HostReport) -> _Case:
    if host.status is not HostStatus.UNEXAMINED:
        return _Case("examined")
    return _Case("examined", SKIPPED, "not-examined", f"not examined: {host.reason or 'no reason is known'}")


def _cases(report: Report, told: Mapping[str, _Told], row: Mapping[str, Outcome]) -> Iterator[_Case]:
    for check, outcome in row.items():
        if outcome.status is Status.PASS:
            yield _Case(check)
        elif outcome.status is Status.SKIP:
            yield _Case(check, SKIPPED, "skip", f"does not apply: {outcome.reason}")
        else:
            kind = FAILURE if report.rules.decides(outcome.status) else KINDS.get(outcome.status, SKIPPED)
            first, *more = (told[finding.id] for finding in outcome.findings)
            texts = "\n\n".join([first.text, *(f"{each.message}\n{each.text}" for each in more)])
            yield _Case(check, kind, outcome.status.value, first.message, texts)


@dataclass(frozen=True, slots=True)
class _Told:
    """A finding in words, which are the same for each of its hosts."""

    message: str
    text: str


def _told(report: Report) -> Mapping[str, _Told]:
    return {finding.id: _Told(_message(finding), _text(report, finding)) for finding in report.findings}


def _message(finding: Finding) -> str:
    return f"{word(finding)}  {culprit(finding)}: {title(finding)}"


def _text(report: Report, finding: Finding) -> str:
    lines = [f"{label}: {text}" for label, text in details(finding, report) if label != "hosts"]
    lines += [f"do: {command}" for command in commands(finding)]
    where, seen = evidence(finding, report)
    lines += [f"seen{where and ' on '}{where}: {each.source}: {each.text}" for each in seen]
    return "\n".join([*lines, f"more: doctor explain {finding.check}"])
