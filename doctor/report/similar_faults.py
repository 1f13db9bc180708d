"""Joins faults that differ only in numbers, for people to read. The JSON keeps each finding."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from doctor.model import Finding
from doctor.report.headline import bare, named_or_counted, title
from doctor.text.nodeset import fold

MOST = 3
"""Up to this many different values are all shown; if there are more, the least and the largest."""
_NUMBER = re.compile(r"(?<![\w./:-])\d+(?:\.\d+)?(?![\w:]|\.\d)")
"""A number by itself, not one inside the name of a host, an address or a path."""


@dataclass(frozen=True, slots=True)
class Fault:
    """Findings of one check with one remedy, whose words are the same except for numbers."""

    findings: tuple[Finding, ...]
    title: str
    cause: Finding | None = None

    @property
    def first(self) -> Finding:
        """The first finding, with the hosts and places of all."""
        if len(self.findings) == 1:
            return self.findings[0]
        hosts = tuple(dict.fromkeys(host for finding in self.findings for host in finding.hosts))
        where = tuple(place for finding in self.findings for place in finding.where)
        return replace(self.findings[0], hosts=hosts, nodeset=fold(hosts), where=where)

    @property
    def found(self) -> str:
        return _values((bare(finding.actual), finding) for finding in self.findings)

    @property
    def expected(self) -> str:
        return _values((bare(finding.expected), finding) for finding in self.findings)


def fold_faults(findings: Sequence[Finding]) -> tuple[Fault, ...]:
    """The faults, in the order of the findings; consequences stay behind their cause."""
    known = {finding.id: finding for finding in findings}
    keys: dict[str, object] = {}
    groups: dict[object, list[Finding]] = {}
    for finding in findings:
        keys[finding.id] = _key(finding, keys.get(finding.because or ""))
        groups.setdefault(keys[finding.id], []).append(finding)
    return tuple(
        Fault(tuple(group), _title(group), known.get(group[0].because or "")) for group in groups.values()
    )


def single(findings: Sequence[Finding]) -> tuple[Fault, ...]:
    """Each finding by itself."""
    known = {finding.id: finding for finding in findings}
    return tuple(single_fault(finding, known.get(finding.because or "")) for finding in findings)


def single_fault(finding: Finding, cause: Finding | None) -> Fault:
    return Fault((finding,), title(finding), cause)


def _key(finding: Finding, cause: object) -> object:
    """What must be equal for findings to be joined; a finding without a culprit, or with places on more hosts
    than are guilty, stays alone.
    """
    if not finding.hosts or len({place.host for place in finding.where}) > len(finding.hosts):
        return finding.id
    words = (_NUMBER.sub("#", text) for text in (title(finding), finding.summary))
    remedy = finding.remedy.id if finding.remedy else ""
    seen = (finding.view, finding.seen_from, finding.confidence)
    return (finding.check, finding.status, remedy, *words, *seen, cause)


def _title(group: Sequence[Finding]) -> str:
    """The title, with the least and the largest of its numbers if they differ."""
    titles = list(dict.fromkeys(map(title, group)))
    if len(titles) == 1:
        return titles[0]
    columns = zip(*(_NUMBER.findall(each) for each in titles), strict=True)
    spans = iter([_span(column) for column in columns])
    return _NUMBER.sub(lambda _: next(spans), titles[0])


def _span(numbers: Iterable[str]) -> str:
    ordered = sorted(set(numbers), key=float)
    return ordered[0] if len(ordered) == 1 else f"{ordered[0]}…{ordered[-1]}"


def _values(said: Iterable[tuple[str, Finding]]) -> str:
    """ "50 MB (node1) … 57 MB (node8)"; the value alone if it is the same everywhere."""
    hosts: dict[str, dict[str, None]] = {}
    for text, finding in said:
        hosts.setdefault(text, {}).update(dict.fromkeys(finding.hosts))
    if len(hosts) < 2:
        return next(iter(hosts), "")
    shown = [f"{text or 'nothing'} ({named_or_counted(tuple(names))})" for text, names in hosts.items()]
    if len(shown) <= MOST:
        return ", ".join(shown)
    ordered = sorted(shown, key=_first_number)
    return f"{ordered[0]} … {ordered[-1]}"


def _first_number(text: str) -> tuple[float, str]:
    found = re.search(r"(-?\d+(?:\.\d+)?)(?: ([kMGTP])B\b)?", text)
    return (float(found[1]) * 1024 ** " kMGTP".index(found[2] or " ") if found else 0.0, text)
