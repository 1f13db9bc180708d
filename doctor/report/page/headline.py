"""The verdict of a report: a word, whom it is about, and one line."""

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence

from doctor.judge.again import RecheckState
from doctor.judge.verdict import Report
from doctor.model import Finding, HostStatus, Status, Verdict
from doctor.report.page.areas import OTHER, area_of
from doctor.report.page.card import CardKind
from doctor.report.page.fault import fold_faults
from doctor.report.page.names import (
    ASIDE,
    CLAUSE,
    FEW,
    MANY,
    NOBODY,
    Called,
    GuiltyHosts,
    are_counted,
    culprit,
    culprits,
    named,
    named_or_counted,
)
from doctor.report.start.go import waived

VERDICTS = {
    Verdict.FAULTY: ("Faulty", CardKind.FAIL),
    Verdict.INCONCLUSIVE: ("Inconclusive", CardKind.OPEN),
    Verdict.HEALTHY: ("Healthy", CardKind.GOOD),
}
LONGEST = 90
"""The most characters of the names in the title."""
_WHERE_OPEN = re.compile(r"^[\w-]+ could not be decided: (?:[\w.-]+(?: -> [\w.-]+)?: )?")
_OUT_OF_REACH = {"host-unreachable": "out of reach"}


def verdict_word(report: Report) -> tuple[str, CardKind]:
    """The verdict and its kind; healthy with a warning is not green."""
    name, kind = VERDICTS[report.verdict]
    if report.run.stopped_by is not None:
        return "Interrupted", kind if report.verdict is Verdict.FAULTY else CardKind.OPEN
    if report.again and report.verdict is Verdict.HEALTHY:
        fixed = all(each.now is RecheckState.FIXED for each in report.again)
        return ("Fixed", kind) if fixed else ("Waived", CardKind.WARN)
    if report.verdict is Verdict.HEALTHY and report.trouble:
        return name, CardKind.WARN
    return name, kind


def whom(report: Report) -> str:
    """The culprits; without any, what is undecided or who is healthy."""
    if report.verdict is Verdict.FAULTY:
        return _first_fault(report)
    if report.verdict is Verdict.INCONCLUSIVE:
        doubtful = [host.name for host in report.hosts if host.status is HostStatus.UNEXAMINED]
        return (
            _cut([f"{named_or_counted(doubtful, report.called)} not proved healthy"])
            if doubtful
            else "not everything was examined"
        )
    warned = dict.fromkeys(culprit(finding, report.called) for finding in report.trouble)
    number = len({finding.check for finding in report.trouble})
    but = f", with {number} warning{'s' if number > 1 else ''}: {_cut(list(warned))}" if warned else ""
    return named_or_counted(report.healthy_hosts, report.called) + but


def _first_fault(report: Report) -> str:
    """The first culprit with its fault, and the number of other faults."""
    faults = fold_faults(report.faults)
    first, *others = [fault for fault in faults if fault.cause is None] or faults
    more = f"; {len(others)} more fault{'s' if len(others) > 1 else ''}" if others else ""
    if not first.first.hosts:
        return f"{first.title}{more}"
    return f"{_cut([culprit(first.first, report.called)])}: {first.title}{more}"


def _cut(names: Sequence[str]) -> str:
    shown: list[str] = []
    for name in names:
        if shown and len(", ".join((*shown, name))) > LONGEST:
            return f"{', '.join(shown)} and {len(names) - len(shown)} more"
        shown.append(name if len(name) <= LONGEST else f"{name[:LONGEST]}…")
    return ", ".join(shown)


def last_line(report: Report) -> str:
    """The verdict, with every culprit: "5 of 8 hosts are faulty: node2 NPU 3 (device network), ..."."""
    said = "" if report.again else waived(report)  # which says that itself
    return _verdict_line(report) + (f" Waived: {said}." if said else "")


def _verdict_line(report: Report) -> str:
    if report.again and report.run.stopped_by is None:
        return _looked_again(report)
    if report.run.stopped_by is not None:
        return f"Interrupted. {guilty_line(report)}".rstrip() + unexamined(report)
    if report.verdict is Verdict.FAULTY:
        return guilty_line(report) + unexamined(report)
    if report.verdict is Verdict.INCONCLUSIVE and report.checks.unapplied:
        return _unapplied(report)
    if report.verdict is Verdict.INCONCLUSIVE:
        open_here = ", ".join(dict.fromkeys(f.check for f in report.findings if f.essential))
        left = report.npu_network_unread or (f"{open_here} could not be decided" if open_here else "")
        left = left or "something essential could not be examined"
        return f"Inconclusive: {'a check broke' if report.broken else left}.{unexamined(report)}"
    return _healthy(report)


def _looked_again(report: Report) -> str:
    """ "Fixed: all 3 faults of run.json.", or "1 still there, 2 fixed, of 3 faults of run.json." """
    counts = {
        now: sum(each.now is now for each in report.again)
        for now in (RecheckState.STILL, RecheckState.OPEN, RecheckState.WAIVED, RecheckState.FIXED)
    }
    known = {each.before.check for each in report.again if each.now is RecheckState.STILL}
    new = [finding for finding in report.faults if finding.check not in known]
    more = f" New: {_culprits_with_areas(new, report.called)}." if new else ""
    number = len(report.again)
    findings = f"{f'{number} faults' if number > 1 else 'fault'} of {report.again_from}"
    if counts[RecheckState.FIXED] == number:
        return f"Fixed: {'all' if number > 1 else 'the'} {findings}.{more}"
    if number == 1:
        return f"{report.again[0].now.value.capitalize()}: the {findings}.{more}"
    said = ", ".join(f"{count} {now.value}" for now, count in counts.items() if count)
    return f"{said}, of {findings}.{more}"


def _unapplied(report: Report) -> str:
    said = "; ".join(
        f"{each.named} {each.why.removeprefix('it ') if each.several else f'applies to no host ({each.why})'}"
        for each in report.checks.unapplied
    )
    whole = report.checks.none_applied
    return f"Nothing was examined: {said}." if whole else f"Inconclusive: {said}.{unexamined(report)}"


def _healthy(report: Report) -> str:
    warned = [finding for finding in report.findings if finding.status is Status.WARN]
    said = "Healthy"
    if left_out := ", ".join(report.npu_network_left_out):
        said += f", except that the NPU network was not examined ({left_out} left out on request)"
    if not warned:
        names = named_or_counted(report.healthy_hosts, report.called)
        return f"{said}: {names}." if report.healthy_hosts else f"{said}. No host was asked."
    number = len(report.warned_checks)
    whose = _culprits_with_areas(warned, report.called)
    return f"{said}, with {number} warning{'s' if number > 1 else ''}: {whose}."


def guilty_line(report: Report) -> str:
    """The number of faulty hosts and the culprits; empty if nothing is at fault."""
    if not report.faults:
        return ""
    states = {host.name: host.status for host in report.hosts}
    guilty = {host for finding in report.faults for host in finding.hosts if host in states}
    faulty = len(guilty) if HostStatus.FAULTY in states.values() else 0
    counted = faulty > FEW and len(report.hosts) >= MANY
    said = _by_area(report.roots) if counted else _culprits_with_areas(report.roots, report.called)
    return f"{_how_many(faulty, len(report.hosts))}: {said}."


def _how_many(faulty: int, hosts: int) -> str:
    if not faulty:
        return "Faulty"
    if hosts == 1:
        return "The host is faulty"
    return f"{faulty} of {hosts} hosts {'is' if faulty == 1 else 'are'} faulty"


def unexamined(report: Report) -> str:
    """A sentence after the verdict about unexamined hosts that no fault names; empty if there are none."""
    guilty = {host for finding in report.faults for host in finding.hosts}
    left = [host for host in report.hosts if host.status is HostStatus.UNEXAMINED]
    rest = {host.name: host.reason or "" for host in left if host.name not in guilty}
    if not are_counted(tuple(rest)):
        return f" Not proved healthy: {named(tuple(rest), report.called)}." if rest else ""
    why = {CLAUSE.split(ASIDE.sub("", _WHERE_OPEN.sub("", reason)))[0] for reason in rest.values()}
    return f" {len(rest)} not proved healthy{f': {why.pop()}' if len(why) == 1 else ''}."


def _by_area(findings: Iterable[Finding]) -> str:
    """ "devices (20), memory (13)": the areas with their numbers of hosts, in the order of the findings."""
    hosts: dict[str, set[str]] = defaultdict(set)
    for finding in findings:
        hosts[_area_name(finding)].update(finding.hosts)
    return ", ".join(f"{area} ({len(names) or NOBODY})" for area, names in hosts.items())


def _area_name(finding: Finding) -> str:
    area = "rank table" if finding.check.startswith("rank-table-") else area_of(finding.check)
    return finding.check if area == OTHER else _OUT_OF_REACH.get(finding.check, area)


def _culprits_with_areas(findings: Iterable[Finding], called: Called) -> str:
    """Each culprit once, with the areas of its faults."""
    areas: dict[GuiltyHosts, dict[str, None]] = {}
    for finding in findings:
        said = _area_name(finding)
        for each in culprits(finding):
            for host in each.hosts:
                areas.setdefault(GuiltyHosts((host,), each.devices, each.ranks), {})[said] = None
        if not finding.hosts:
            areas.setdefault(GuiltyHosts((), ranks=culprit(finding)), {})[said] = None
    alike: dict[tuple[str, str, str], list[str]] = {}
    for who, names in areas.items():
        alike.setdefault((who.devices, who.ranks, ", ".join(names)), []).extend(who.hosts)
    return ", ".join(
        f"{GuiltyHosts(tuple(hosts), devices, ranks, called) if hosts else ranks} ({said})"
        for (devices, ranks, said), hosts in alike.items()
    )
