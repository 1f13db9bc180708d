"""Links symptoms to the findings that cause them, and clears suspects that a cause rules out.

A finding is only compared with those that share a host with it, because there may be thousands.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from doctor.api import Check, grouped
from doctor.model import UNDECIDED, Confidence, Finding, Place, Status
from doctor.text.nodeset import fold

NEARLY_ALL = 0.9
_MAY_EXPLAIN = {(Status.FAIL, Status.FAIL), (Status.FAIL, Status.WARN), (Status.WARN, Status.WARN)}


def link_causes(found: Sequence[Finding], checks: Mapping[str, Check]) -> list[Finding]:
    """Point each symptom at its cause. A cause that explains all of it also clears the other suspects."""
    linked = []
    because: dict[str, str] = {}
    causes = _Causes(found)
    for finding in found:
        names = checks[finding.check].causes if finding.check in checks else ()
        fitting = (c for name in names for c in causes.that_explain(finding, name))
        cause = next((c for c in fitting if finding.id not in _chain(c.finding.id, because)), None)
        if cause is None:
            linked.append(finding)
            continue
        because[finding.id] = cause.finding.id
        finding = replace(finding, because=cause.finding.id)
        whole = all(_at(cause, place) for place in finding.where)  # so that no other host is needed
        linked.append(_narrow_to_cause(finding, cause) if whole else finding)
    return linked


class _Cause:
    """A finding that may be a cause, with its places by host."""

    def __init__(self, finding: Finding) -> None:
        self.finding = finding
        self.hosts = frozenset(finding.hosts)
        self.places = grouped((place.host, place) for place in finding.where)


class _Causes:
    """All findings, by check and host."""

    def __init__(self, found: Sequence[Finding]) -> None:
        self._found = [_Cause(finding) for finding in found]
        self._on: Mapping[tuple[str, str | None], Sequence[int]] = grouped(
            ((finding.check, host), number) for number, finding in enumerate(found) for host in finding.hosts
        )

    def that_explain(self, symptom: Finding, check: str) -> Iterator[_Cause]:
        """The findings of a check that explain the symptom, in their order."""
        fitting: Iterable[int]
        if symptom.hosts and symptom.confidence is not Confidence.SUSPECT:
            # Unless the cause names all hosts of the symptom, the others have a fault of their own.
            numbers = self._on.get((check, symptom.hosts[0]), ())
            fitting = (n for n in numbers if self._found[n].hosts.issuperset(symptom.hosts))
        elif symptom.hosts:
            fitting = sorted({n for host in symptom.hosts for n in self._on.get((check, host), ())})
        else:
            struck = {place.host for place in symptom.where}
            shared = Counter(n for host in struck for n in self._on.get((check, host), ()))
            fitting = sorted(n for n, hosts in shared.items() if hosts >= NEARLY_ALL * len(struck))
        places = grouped((end, p) for p in symptom.where for end in (p.host, p.peer) if end)
        for cause in (self._found[number] for number in fitting):
            if (cause.finding.status, symptom.status) in _MAY_EXPLAIN and (
                not symptom.hosts or any(_at(cause, p) for host in cause.hosts for p in places.get(host, ()))
            ):
                yield cause


def _narrow_to_cause(finding: Finding, cause: _Cause) -> Finding:
    """The finding, limited to those suspects that the cause names."""
    if finding.confidence is not Confidence.SUSPECT:
        return finding
    hosts = tuple(host for host in finding.hosts if host in cause.hosts)
    summary = finding.summary.removesuffix(UNDECIDED)
    return replace(finding, hosts=hosts, nodeset=fold(hosts), summary=summary, confidence=Confidence.STRONG)


def _chain(id: str | None, because: Mapping[str, str]) -> Iterator[str]:
    """A finding, its cause, the cause of that, and so on; endless if a finding led back to itself."""
    while id is not None:
        yield id
        id = because.get(id)


def _at(cause: _Cause, place: Place) -> bool:
    """Whether the cause is at one end of this place, and towards the other end if it names one."""
    for end, other in ((place.host, place.peer), (place.peer, place.host)):
        if end in cause.hosts:
            own = cause.places.get(end, ())
            if not own:
                return True
            towards = {p.peer for p in own if None in (p.device, place.device) or p.device == place.device}
            if towards and (other is None or None in towards or other in towards):
                return True
    return False
