"""The table of hosts: what was found on each, area by area; hosts that are alike share a row."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from doctor.judge.verdict import HostReport, Report
from doctor.model import Finding, HostStatus, Result, Scope, Status
from doctor.report.areas import AREAS, OTHER, area_of
from doctor.report.headline import culprits, word

OK, NOT_READ, PART_READ, UNDECIDED, NOTHING = "ok", "not read", "part read", "undecided", "-"
"""NOTHING: no check of the area applies. UNDECIDED: a fault shows there, and nobody knows whose it is."""
_TROUBLE = (Status.FAIL, Status.CRASH, Status.WARN)


@dataclass(frozen=True, slots=True)
class HostRow:
    """`cells` are by area; those of areas of which nothing applies to any host are left out."""

    hosts: tuple[str, ...]
    cells: Mapping[str, str]
    verdict: str


def host_rows(report: Report) -> tuple[HostRow, ...]:
    """In the order of the hosts."""
    seen = _statuses(report)
    areas = [area for area in (*AREAS, OTHER) if any(area in found for found in seen.values())]
    rows: dict[tuple[tuple[str, ...], str], list[str]] = {}
    for host in report.hosts:
        cells = tuple(_cell(report, host.name, area, seen[host.name]) for area in areas)
        rows.setdefault((cells, _verdict(report, host)), []).append(host.name)
    return tuple(
        HostRow(tuple(hosts), MappingProxyType(dict(zip(areas, cells, strict=True))), verdict)
        for (cells, verdict), hosts in rows.items()
    )


def _statuses(report: Report) -> dict[str, dict[str, set[Status]]]:
    """Host -> area -> what became of its checks, but for those that do not apply."""
    seen: dict[str, dict[str, set[Status]]] = {host.name: {} for host in report.hosts}
    for result in report.results:
        area = area_of(result.check)
        if result.status is Status.SKIP or _proves_no_training(result):
            continue
        for host in result.hosts:
            seen.setdefault(host, {}).setdefault(area, set()).add(result.status)
    for check, named in _compared(report).items():
        for host in seen.keys() - named - unheard_hosts(report):
            seen[host].setdefault(area_of(check), set()).add(Status.PASS)
    return seen


def _proves_no_training(result: Result) -> bool:
    """That the launch is sound does not mean that anything was trained."""
    launch = area_of(result.check) == "training" and not result.check.startswith("smoke-")
    return launch and result.status is Status.PASS


def _compared(report: Report) -> dict[str, set[str]]:
    """Checks that compared hosts and found something -> the hosts that they name: they clear the others."""
    named: dict[str, set[str]] = {}
    for result in report.results:
        if report.scopes.get(result.check) is Scope.CLUSTER and result.status in (Status.FAIL, Status.WARN):
            named.setdefault(result.check, set()).update(result.hosts)
    for result in report.results:
        if result.check in named:
            named[result.check].update(result.hosts)
    return named


def unheard_hosts(report: Report) -> set[str]:
    """Hosts that could not be asked at all."""
    places = (place for f in report.findings if f.check == "host-unreachable" for place in f.where)
    return {place.host for place in places if place.host}


def _cell(report: Report, host: str, area: str, seen: Mapping[str, set[Status]]) -> str:
    here = [found for found in report.findings if found.status in _TROUBLE and area_of(found.check) == area]
    kinds = Counter(
        "broken check"
        if found.status is Status.CRASH
        else "fault"
        if report.rules.faults(found)
        else "warning"
        for found in here
        if host in found.hosts
    )
    for kind in ("fault", "broken check", "warning"):
        if number := kinds[kind]:
            return f"{number} {kind}{'s' if number > 1 else ''}"
    if any(not found.hosts and (host in _struck(found) or not _struck(found)) for found in here):
        return UNDECIDED
    statuses = seen.get(area, set())
    if Status.UNKNOWN in statuses or not seen or host in unheard_hosts(report):
        return PART_READ if Status.PASS in statuses else NOT_READ
    return OK if Status.PASS in statuses else NOTHING


def _struck(finding: Finding) -> set[str]:
    """Hosts where the fault shows."""
    return {host for place in finding.where for host in (place.host, place.peer) if host}


def _verdict(report: Report, host: HostReport) -> str:
    """Its worst fault, and how many more there are: "FAIL  NPU 3 device-link-down (+1)"."""
    mine = [found for found in report.findings if found.status in _TROUBLE and host.name in found.hosts]
    if not mine:
        return {HostStatus.HEALTHY: OK, HostStatus.UNEXAMINED: "not proved healthy"}.get(
            host.status, host.status.value
        )
    first = mine[0]
    part = next((each.devices or each.ranks for each in culprits(first) if host.name in each.hosts), "")
    more = f"(+{len(mine) - 1})" if len(mine) > 1 else ""
    return f"{word(first)}  {' '.join(filter(None, (part, first.check, more)))}"
