"""The culprit and the title of a finding, in a few words; and the verdict of a report in one line."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType

from doctor.judge.again import RecheckState
from doctor.judge.verdict import Report
from doctor.model import Finding, HostStatus, Status, Verdict
from doctor.report.areas import OTHER, area_of
from doctor.text.nodeset import fold
from doctor.text.ranks import ranges, ranks_text

WORDS = {Status.FAIL: "FAIL", Status.WARN: "WARN", Status.CRASH: "BROKEN", Status.UNKNOWN: "UNKNOWN"}
LONGEST = 60
"""A summary of at most this many characters is used as the headline unchanged."""
NOBODY = "no single host"
MANY = 16
"""If there are at least this many hosts, they are counted, and listed in one place only."""
FEW, LONG = 4, 32
"""More than FEW hosts are also counted if their names fold into more than LONG characters."""

_IT = re.compile(r"^(?:its?|kernel log:) ", re.IGNORECASE)
_ASIDE = re.compile(r" \([^()]*\)")
_WHERE_OPEN = re.compile(r"^[\w-]+ could not be decided: (?:[\w-]+: )?")
_CLAUSE = re.compile(r"[:;,] ")
_NEVER_ENTERED = re.compile(
    r"^it never entered (?P<group>\w+) (?P<op>\w+) \d+ \([^()]*\) of (?:training (?P<step>step \d+)|the "
    r"(?P<phase>\w+ phase)), and (?P<ranks>.+) waits? for it$"
)
_TITLES = {
    "device-link-down": "network link is down",
    "device-ip-missing": "has no address in the device network",
}
"""Titles of checks whose summary cannot be read without its context."""

_OUT_OF_REACH = {"host-unreachable": "out of reach"}
Called = Mapping[str, str]
"""The own names of hosts that were named by their addresses (`Report.called`)."""
_AS_NAMED: Called = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class GuiltyHosts:
    """Hosts with the same fault, and the part of them that is faulty."""

    hosts: tuple[str, ...]
    devices: str = ""
    """ "NPU 3" """
    ranks: str = ""
    """ "rank 3" """
    called: Called = field(default_factory=dict, compare=False)

    def __str__(self) -> str:
        names = named_or_counted(self.hosts, self.called)
        if self.ranks:
            return f"{self.ranks} on {names}"
        between = ", " if are_counted(self.hosts) else " "
        return f"{names}{between}{self.devices}" if self.devices else names


def are_counted(hosts: Sequence[str]) -> bool:
    """Whether the hosts are counted because their names would be too long."""
    return len(hosts) >= MANY or (len(hosts) > FEW and len(fold(hosts)) > LONG)


def named_or_counted(hosts: Sequence[str], called: Called = _AS_NAMED) -> str:
    return f"{len(hosts)} hosts" if are_counted(hosts) else named(hosts, called)


def named(hosts: Sequence[str], called: Called = _AS_NAMED) -> str:
    """ "node[1-4]"; "node2 (198.18.0.3)" if the host was named by its address and reported its own name."""
    own = [called[host] for host in hosts if host in called]
    return f"{fold(own)} ({fold(hosts)})" if own and len(own) == len(hosts) else fold(hosts)


def culprits(finding: Finding, called: Called = _AS_NAMED) -> tuple[GuiltyHosts, ...]:
    """One culprit for all hosts with the same faulty devices or ranks."""
    ranks: dict[str, set[int]] = {host: set() for host in finding.hosts}
    devices: dict[str, set[int]] = {host: set() for host in finding.hosts}
    for place in finding.where:
        if place.host in ranks and place.rank is not None and finding.check.startswith("smoke-"):
            ranks[place.host].add(place.rank)
        elif place.host in devices and place.device is not None:
            devices[place.host].add(place.device)
    if all(ranks.values()) and ranks:
        return (GuiltyHosts(finding.hosts, ranks=ranks_text(set().union(*ranks.values())), called=called),)
    noun = "NPU" if finding.check.startswith(("device-", "rank-table-")) else "GPU"
    alike: dict[str, list[str]] = {}
    for host, numbers in devices.items():
        plural = "s" if len(numbers) > 1 else ""
        part = f"{noun}{plural} {','.join(ranges(numbers))}" if numbers else ""
        alike.setdefault(part, []).append(host)
    return tuple(GuiltyHosts(tuple(hosts), devices=part, called=called) for part, hosts in alike.items())


def culprit(finding: Finding, called: Called = _AS_NAMED) -> str:
    """ "node2 NPU 3", "rank 3 on node2", "node[1-4,6]"; else the place in a file."""
    guilty = ", ".join(map(str, culprits(finding, called)))
    in_a_file = not any(place.host for place in finding.where)
    return guilty or (in_a_file and finding.subject) or NOBODY


def word(finding: Finding) -> str:
    hangs = finding.check == "smoke-hang" and finding.status is Status.FAIL
    return "HANG" if hangs else WORDS[finding.status]


def bare(text: str) -> str:
    """The text without a leading "it", "its" or "kernel log:", since the culprit is named before it."""
    return _IT.sub("", text)


def title(finding: Finding) -> str:
    """The fault in a few words: the summary, or its first clause if it is long."""
    if finding.status is Status.CRASH:
        return "the check itself broke"
    if found := _NEVER_ENTERED.match(finding.summary):
        at = found["step"] or found["phase"]
        waits = "wait for it" if found["ranks"].startswith("ranks") else "waits for it"
        return f"stopped in {at} before a {found['group']} {found['op']}; {found['ranks']} {waits}"
    text = _TITLES.get(finding.check) or bare(finding.summary).rstrip(".")
    return text if len(text) <= LONGEST else _CLAUSE.split(_ASIDE.sub("", text))[0]


def last_line(report: Report) -> str:
    """The verdict, with every culprit: "5 of 8 hosts are faulty: node2 NPU 3 (device network), ..."."""
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
    """ "Fixed: all 3 findings of run.json.", or "1 still there, 2 fixed, of 3 findings of run.json." """
    counts = {
        now: sum(each.now is now for each in report.again)
        for now in (RecheckState.STILL, RecheckState.OPEN, RecheckState.FIXED)
    }
    known = {each.before.check for each in report.again if each.now is RecheckState.STILL}
    new = [f for f in report.findings if report.rules.faults(f) and f.check not in known]
    more = f" New: {_culprits_with_areas(new, report.called)}." if new else ""
    number = len(report.again)
    findings = f"{f'{number} findings' if number > 1 else 'finding'} of {report.again_from}"
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
    number = len(warned_checks(report))
    whose = _culprits_with_areas(warned, report.called)
    return f"{said}, with {number} warning{'s' if number > 1 else ''}: {whose}."


def warned_checks(report: Report) -> tuple[str, ...]:
    """The checks that warn, in the order of the findings."""
    return tuple(dict.fromkeys(each.check for each in report.findings if each.status is Status.WARN))


def guilty_line(report: Report) -> str:
    """The number of faulty hosts and the culprits; empty if nothing is at fault."""
    faults = [finding for finding in report.findings if report.rules.faults(finding)]
    if not faults:
        return ""
    caused = {finding.id: {*finding.hosts} for finding in faults}
    roots = [f for f in faults if f.because not in caused or {*f.hosts} - caused[f.because]]
    states = {host.name: host.status for host in report.hosts}
    guilty = {host for finding in faults for host in finding.hosts if host in states}
    faulty = len(guilty) if HostStatus.FAULTY in states.values() else 0
    counted = faulty > FEW and len(report.hosts) >= MANY
    said = _by_area(roots) if counted else _culprits_with_areas(roots, report.called)
    return f"{_how_many(faulty, len(report.hosts))}: {said}."


def _how_many(faulty: int, hosts: int) -> str:
    if not faulty:
        return "Faulty"
    if hosts == 1:
        return "The host is faulty"
    return f"{faulty} of {hosts} hosts {'is' if faulty == 1 else 'are'} faulty"


def unexamined(report: Report) -> str:
    """A sentence after the verdict about unexamined hosts that no fault names; empty if there are none."""
    guilty = {host for f in report.findings if report.rules.faults(f) for host in f.hosts}
    left = [host for host in report.hosts if host.status is HostStatus.UNEXAMINED]
    rest = {host.name: host.reason or "" for host in left if host.name not in guilty}
    if not are_counted(tuple(rest)):
        return f" Not proved healthy: {named(tuple(rest), report.called)}." if rest else ""
    why = {_CLAUSE.split(_ASIDE.sub("", _WHERE_OPEN.sub("", reason)))[0] for reason in rest.values()}
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
