"""The table of hosts: the result of each area on each host; hosts with equal results share a row."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING

from doctor.model import Finding, HostStatus, Result, Scope, Status
from doctor.report.page.areas import AREAS, OTHER, area_of
from doctor.report.page.names import culprits, word

if TYPE_CHECKING:
    from doctor.judge.verdict import HostReport, Report

OK, NOT_READ, PART_READ, UNDECIDED, NOTHING = "ok", "not read", "part read", "undecided", "-"
"""NOTHING: no check of the area applies. UNDECIDED: a fault shows there, but its culprit is unknown."""
_DAMAGE = (HostStatus.FAULTY, HostStatus.UNEXAMINED, HostStatus.HEALTHY)
_KINDS = ("fault", "broken check", "warning", "waived")
"""Of troubles, the worst first."""
_KIND = {Status.CRASH: "broken check", Status.WARN: "warning", Status.WAIVED: "waived"}


@dataclass(frozen=True, slots=True)
class HostRow:
    """`cells` maps areas to texts; areas in which no check applies to any host are left out."""

    hosts: tuple[str, ...]
    cells: Mapping[str, str]
    verdict: str


def host_rows(report: Report) -> tuple[HostRow, ...]:
    """The rows, the most damage first, else in the order of the hosts."""
    unheard = report.unheard
    seen = _statuses(report, unheard)
    areas = [area for area in (*AREAS, OTHER) if any(area in found for found in seen.values())]
    troubles = _Troubles(report)
    rows: dict[tuple[tuple[str, ...], str], list[str]] = {}
    for host in report.hosts:
        own = seen[host.name]
        cells = tuple(
            troubles.worst(host.name, area) or _untroubled(own, area, host.name in unheard) for area in areas
        )
        rows.setdefault((cells, troubles.verdict(host)), []).append(host.name)
    last = len(troubles.place)
    worst = {h.name: (_DAMAGE.index(h.status), troubles.place.get(h.name, last)) for h in report.hosts}
    found = (
        HostRow(tuple(hosts), MappingProxyType(dict(zip(areas, cells, strict=True))), verdict)
        for (cells, verdict), hosts in rows.items()
    )
    return tuple(sorted(found, key=lambda row: min(map(worst.__getitem__, row.hosts))))


def by_trouble(rows: Sequence[HostRow]) -> tuple[list[str], list[str], list[str]]:
    """The areas in which something is wrong, those that were not wholly read, and those that are well."""
    cells = {area: {row.cells[area] for row in rows} - {NOTHING} for area in (rows[0].cells if rows else ())}
    wrong = [area for area, said in cells.items() if not said <= {OK, NOT_READ, PART_READ}]
    kinds = (*_KINDS, UNDECIDED)  # the worst first
    wrong.sort(key=lambda area: next(n for n, kind in enumerate(kinds) if kind in " ".join(cells[area])))
    unread = [area for area, said in cells.items() if area not in wrong and not said <= {OK}]
    return wrong, unread, [area for area, said in cells.items() if said == {OK}]


def _statuses(report: Report, unheard: set[str]) -> dict[str, dict[str, set[Status]]]:
    """Host -> area -> the results of its checks, except checks that do not apply."""
    seen: dict[str, dict[str, set[Status]]] = {host.name: {} for host in report.hosts}
    for result in report.results:
        area = area_of(result.check)
        if result.status is Status.SKIP or _proves_no_training(result):
            continue
        for host in result.hosts:
            seen.setdefault(host, {}).setdefault(area, set()).add(result.status)
    for check, named in _compared(report).items():
        for host in seen.keys() - named - unheard:
            seen[host].setdefault(area_of(check), set()).add(Status.PASS)
    return seen


def _proves_no_training(result: Result) -> bool:
    """Whether it says nothing about training: a sound launch does not mean that anything was trained."""
    launch = area_of(result.check) == "training" and not result.check.startswith("smoke-")
    return launch and result.status is Status.PASS


def _compared(report: Report) -> dict[str, set[str]]:
    """Checks that compared hosts and found something -> the hosts that they name; all others pass."""
    bad, scopes = (Status.FAIL, Status.WARN, Status.WAIVED), report.checks.scopes
    found = {each.check for each in report.results if each.status in bad}
    named: dict[str, set[str]] = {check: set() for check in found if scopes.get(check) is Scope.CLUSTER}
    for result in report.results:
        if result.check in named:
            named[result.check].update(result.hosts)
    return named


def _untroubled(seen: Mapping[str, set[Status]], area: str, unheard: bool) -> str:
    """The cell of a host on which nothing of the area is wrong."""
    statuses = seen.get(area, set())
    if Status.UNKNOWN in statuses or not seen or unheard:
        return PART_READ if Status.PASS in statuses else NOT_READ
    return OK if Status.PASS in statuses else NOTHING


class _Troubles:
    """What is wrong, by host. The findings are gone through only once, however many hosts there are."""

    def __init__(self, report: Report) -> None:
        self._on: dict[str, list[Finding]] = {}
        self._kinds: dict[tuple[str, str], Counter[str]] = defaultdict(Counter)
        self._parts: dict[str, str] = {}
        self._undecided: dict[str, set[str] | None] = {}
        """Area -> the hosts on which a fault without a known culprit shows; None: all hosts."""
        for found in report.findings:
            if report.rules.faults(found) or found.status in _KIND:
                kind = "fault" if report.rules.faults(found) else _KIND[found.status]
                self._add(found, area_of(found.check), kind)
        self.place = {host: place for place, host in enumerate(self._on)}
        """The place of a host's worst finding among all, which are in the order of damage."""

    def _add(self, found: Finding, area: str, kind: str) -> None:
        for host in found.hosts:
            self._kinds[host, area][kind] += 1
            self._on.setdefault(host, []).append(found)
        for each in culprits(found):
            for host in each.hosts:
                self._parts.setdefault(host, each.devices or each.ranks)
        if not found.hosts:
            struck = {host for place in found.where for host in (place.host, place.peer) if host}
            known = self._undecided.setdefault(area, set())
            self._undecided[area] = known | struck if struck and known is not None else None

    def worst(self, host: str, area: str) -> str:
        """The worst of the area in a word or two; empty if nothing is wrong."""
        kinds = self._kinds.get((host, area), Counter())
        for kind in _KINDS:
            if number := kinds[kind]:
                return f"{number} {kind}{'s' if number > 1 and kind != 'waived' else ''}"
        struck = self._undecided.get(area, set())
        return UNDECIDED if struck is None or host in struck else ""

    def verdict(self, host: HostReport) -> str:
        """The worst fault of the host, and the number of others: "FAIL  NPU 3 device-link-down (+1)"."""
        mine = self._on.get(host.name)
        if not mine:
            return {HostStatus.HEALTHY: OK, HostStatus.UNEXAMINED: "not proved healthy"}.get(
                host.status, host.status.value
            )
        more = f"(+{len(mine) - 1})" if len(mine) > 1 else ""
        words = filter(None, (self._parts.get(host.name), mine[0].check, more))
        return f"{word(mine[0])}  {' '.join(words)}"
