"""The report as JUnit XML, for Jenkins and GitLab: one suite per host, one test case per check.

Both group cases by class; Jenkins adds the number of failed ones and the build since which they fail. So a
class is a host, and the list of classes is the list of machines to look at. Names of cases hold no device and
no number, so that they are the same in every run. GitLab shows the text of an element, Jenkins its message
too.

Undecided results and warnings are not passes, but they do not break a build: both are skipped, with the
reason. The first case is the verdict: it passes if the exit code is 0.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from xml.etree import ElementTree as Xml

from doctor.expect import moment
from doctor.model import HostStatus, Status, Verdict, View
from doctor.report.files.envelope import Envelope, FindingEntry, HostEntry
from doctor.report.files.json import CheckReport
from doctor.report.files.outcomes import NO_HOST, CheckOutcome, outcomes
from doctor.report.page.fault import MOST_EVIDENCE, cut
from doctor.report.page.names import WORDS, named_or_counted, waiver_words
from doctor.text.printable import clean, clean_line

NAME = "cluster-doctor"
ALL_HOSTS = "all hosts"
"""The suite of the verdict and of findings without a host."""
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


def as_junit(envelope: Envelope) -> bytes:
    root = Xml.Element("testsuites", name=NAME, time=f"{envelope.run.seconds:.3f}")
    table, told = outcomes(envelope), _finding_words(envelope)
    hosts = {host.name: _examined(host) for host in envelope.hosts}
    whole = [_verdict(envelope), *_unloaded(envelope), *_cases(envelope, told, table.get(NO_HOST, {}))]
    _add_suite(root, envelope, ALL_HOSTS, whole)
    for host, row in table.items():
        if host != NO_HOST:
            first = [hosts[host]] if host in hosts else []
            _add_suite(root, envelope, host, [*first, *_cases(envelope, told, row)])
    for count in ("tests", "failures", "errors"):
        root.set(count, str(sum(int(suite.get(count, "0")) for suite in root)))
    Xml.indent(root, " ")
    text: str = Xml.tostring(root, "unicode")
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{text}\n'.encode()


def _add_suite(root: Xml.Element, envelope: Envelope, host: str, cases: Iterable[_Case]) -> None:
    name = clean_line(host)
    suite = Xml.SubElement(root, "testsuite", name=name)
    if begin := moment(envelope.run.started):
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


def _verdict(envelope: Envelope) -> _Case:
    code, verdict = envelope.exit_code, envelope.verdict
    if code == 0:
        return _Case("verdict")
    kind = FAILURE if verdict is Verdict.FAULTY else ERROR
    return _Case("verdict", kind, verdict.value, envelope.headline, f"exit code {code}")


def _unloaded(envelope: Envelope) -> Iterator[_Case]:
    for number, source in enumerate(envelope.unloaded if isinstance(envelope, CheckReport) else (), 1):
        yield _Case(f"checks not loaded {number}", ERROR, "not-loaded", source)


def _examined(host: HostEntry) -> _Case:
    if host.status is not HostStatus.UNEXAMINED:
        return _Case("examined")
    return _Case("examined", SKIPPED, "not-examined", f"not examined: {host.reason or 'no reason is known'}")


def _cases(
    envelope: Envelope, told: Mapping[str, tuple[str, str]], row: Mapping[str, CheckOutcome]
) -> Iterator[_Case]:
    kinds = KINDS | ({Status.WARN: FAILURE} if envelope.run.strict else {})
    for check, outcome in row.items():
        if outcome.status is Status.PASS:
            yield _Case(check)
        elif outcome.status is Status.SKIP:
            yield _Case(check, SKIPPED, "skip", f"does not apply: {outcome.reason}")
        else:
            (message, text), *more = (told[finding.id] for finding in outcome.findings)
            texts = "\n\n".join([text, *map("\n".join, more)])
            yield _Case(check, kinds.get(outcome.status, SKIPPED), outcome.status.value, message, texts)


def _finding_words(envelope: Envelope) -> Mapping[str, tuple[str, str]]:
    """The message and the text of each finding; they are the same for each of its hosts."""
    by_id = {finding.id: finding for finding in envelope.findings}
    return {
        id: (f"{_word(found, envelope.KEY)}  {found.headline}", "\n".join(_lines(found, by_id)))
        for id, found in by_id.items()
    }


def _word(found: FindingEntry, key: str) -> str:
    hangs = "hang" in (key, (found.check or "").removeprefix("smoke-"))
    return "HANG" if hangs and found.status is Status.FAIL else WORDS[found.status]


def _lines(found: FindingEntry, by_id: Mapping[str, FindingEntry]) -> Iterator[str]:
    cause, said = by_id.get(found.because or ""), found.summary.rstrip(".")
    because = f"of {cause.check or cause.cause} on {named_or_counted(cause.hosts) or 'all'}" if cause else ""
    rows = (
        ("waiver", waiver_words(found.waiver, found.status)),
        ("says", said if not found.headline.endswith(said) else ""),
        ("where", found.subject if found.subject and found.subject not in found.headline + said else ""),
        ("because", because),
        ("found", found.actual),
        ("expected", found.expected),
        ("view", "seen from inside the container" if found.seen_from is View.CONTAINER else ""),
        ("certainty", found.confidence.value),
    )
    yield from (f"{label}: {text}" for label, text in rows if text)
    if found.remedy and not cause:  # fixing the cause fixes the symptom
        yield from (f"do: {command}" for command in found.remedy.commands)
    for each in found.evidence[:MOST_EVIDENCE]:
        where = f" on {each.host}" if each.host and len(found.hosts) > 1 else ""
        yield f"seen{where}: {each.source}: {cut(each.text)}"
    if found.check:
        yield f"more: doctor explain {found.check}"
