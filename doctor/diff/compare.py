"""Two runs -> what is new, gone, still there or undecided, and the facts that changed. Pure."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from doctor.diff.envelope import ChangeKind, FactChangeEntry
from doctor.diff.saved import Saved
from doctor.errors import EXIT_FAULT, EXIT_INCONCLUSIVE, EXIT_OK
from doctor.facts.smoke import JudgedRun
from doctor.judge.baseline import is_busier, slower_by_kind
from doctor.judge.fact_changes import OF_THE_MOMENT, TITLES, differ, is_worse, shown
from doctor.judge.link_rates import load, measures
from doctor.model import Status
from doctor.report.files.envelope import FindingEntry, PlaceEntry

BAD = (Status.WARN, Status.FAIL)


@dataclass(frozen=True, slots=True)
class Change:
    """What has become of a finding on these hosts."""

    kind: ChangeKind
    finding: FindingEntry
    hosts: tuple[str, ...]
    why: str = ""


@dataclass(frozen=True, slots=True)
class Difference:
    before: Saved
    after: Saved
    changes: tuple[Change, ...] = ()
    facts: tuple[FactChangeEntry, ...] = ()
    both: tuple[str, ...] = ()
    """The hosts of both runs."""
    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()

    def of(self, *kinds: ChangeKind) -> tuple[Change, ...]:
        return tuple(each for each in self.changes if each.kind in kinds)

    @property
    def worse(self) -> bool:
        return bool(self.of(ChangeKind.NEW)) or any(each.worse for each in self.facts)

    @property
    def exit_code(self) -> int:
        """1 if something got worse, 3 if that cannot be said, else 0."""
        if self.worse:
            return EXIT_FAULT
        return EXIT_INCONCLUSIVE if (not self.both or self.of(ChangeKind.OPEN, ChangeKind.ALONE)) else EXIT_OK


def difference(before: Saved, after: Saved) -> Difference:
    then, now = ([host.name for host in run.hosts] for run in (before, after))
    both = tuple(name for name in now if name in {*then})
    return Difference(
        before,
        after,
        tuple(_changes(before, after, {*both})),
        (*_facts(before, after, both), *_rates(before.training, after.training, both)),
        both,
        tuple(name for name in now if name not in {*then}),
        tuple(name for name in then if name not in {*now}),
    )


def _changes(before: Saved, after: Saved, both: set[str]) -> Iterator[Change]:
    """Worst first: new findings, those that one run alone decided, those that stay, those that are gone."""
    found: dict[ChangeKind, list[Change]] = {kind: [] for kind in ChangeKind}
    for finding in after.findings:
        for kind, hosts, why in _split(finding, before, both, ChangeKind.NEW, ChangeKind.ALONE):
            found[kind].append(Change(kind, finding, hosts, why))
    for finding in before.findings:
        for kind, hosts, why in _split(finding, after, both, ChangeKind.GONE, ChangeKind.OPEN):
            if kind is not ChangeKind.STILL or why:
                found[kind].append(Change(kind, finding, hosts, why))
    for kind in (ChangeKind.NEW, ChangeKind.ALONE, ChangeKind.OPEN, ChangeKind.STILL, ChangeKind.GONE):
        yield from sorted(found[kind], key=lambda each: -severity(each.finding))


def _split(
    finding: FindingEntry, other: Saved, both: set[str], absent: ChangeKind, undecided: ChangeKind
) -> Iterator[tuple[ChangeKind, tuple[str, ...], str]]:
    """By what the other run says of them: it has the same, it does not, or it did not decide that."""
    if severity(finding) < 0:
        return
    groups: dict[tuple[ChangeKind, str], list[str]] = {}
    for host in finding.hosts or ("",):
        if host and host not in both:
            continue
        why = ""
        same = [*_same(finding, host, other.findings)]
        if as_bad := {each.status for each in same if severity(each) >= severity(finding)}:
            kind, why = ChangeKind.STILL, "the other run waives it" if as_bad == {Status.WAIVED} else ""
        elif why := _undecided(finding, host, other):
            kind = undecided
        else:
            kind = absent
        if finding.status is Status.WAIVED:  # no news, unless the waiver is of a time when it was a warning
            if kind is not ChangeKind.NEW or Status.WAIVED not in {each.status for each in same}:
                continue
            why = "waived; what was waived before was a warning"
        groups.setdefault((kind, why), []).append(host)
    for (kind, why), hosts in groups.items():
        yield kind, tuple(filter(None, hosts)), why


def _same(finding: FindingEntry, host: str, others: Iterable[FindingEntry]) -> Iterator[FindingEntry]:
    """Those that are the same fault of the same part of the host."""
    part = _part(finding, host)
    return (
        each
        for each in others
        if each.check == finding.check
        and (not host or host in each.hosts)
        and severity(each) >= 0
        and (part <= _part(each, host) or not (part and _part(each, host)))
    )


def severity(finding: FindingEntry) -> int:
    """That of a waived finding is what it would be without its waiver; -1 if it is neither."""
    status = finding.status
    if status is Status.WAIVED:
        status = finding.waiver.status if finding.waiver else Status.FAIL
    return BAD.index(status) if status in BAD else -1


def _part(finding: FindingEntry, host: str) -> set[PlaceEntry]:
    """The devices, ports and ends of connections that are at fault, without ranks and processes."""
    own = (each for each in finding.where if each.host in (host or each.host, None))
    return {PlaceEntry(device=each.device, port=each.port, peer=each.peer) for each in own} - {PlaceEntry()}


def _undecided(finding: FindingEntry, host: str, other: Saved) -> str:
    """Why the other run does not say whether the host has this fault; empty if it does."""
    rows = [row for row in other.results if row.check == finding.check and (not host or host in row.hosts)]
    if any(row.status in (Status.PASS, Status.WAIVED, *BAD) for row in rows):
        return ""
    silent = next((each for each in other.hosts if each.name == host and each.status == "unexamined"), None)
    if silent is not None:
        return silent.reason or "the host was not examined"
    return next((row.reason for row in rows if row.reason), "") or "this check was not made"


def _facts(before: Saved, after: Saved, both: Iterable[str]) -> Iterator[FactChangeEntry]:
    """Facts that were asked for in both runs, and differ by more than they differ between equal hosts."""
    then, now = ({host.name: host.facts for host in run.hosts} for run in (before, after))
    asked = {key for facts in then.values() for key in facts} & {
        key for facts in now.values() for key in facts
    }
    rows: dict[tuple[str, str, str, bool], list[str]] = {}
    for host in both:
        heard = then[host] and now[host]  # a host that did not answer is a finding
        for key in TITLES if heard else ():
            if key in asked - OF_THE_MOMENT and differ(key, then[host].get(key), now[host].get(key)):
                worse = is_worse(key, then[host].get(key), now[host].get(key))
                rows.setdefault((key, shown(key, then[host]), shown(key, now[host]), worse), []).append(host)
    place = list(TITLES)
    for (key, was, now_is, worse), hosts in sorted(rows.items(), key=lambda row: place.index(row[0][0])):
        yield FactChangeEntry(key=key, before=was, after=now_is, hosts=tuple(hosts), worse=worse)


def _rates(then: JudgedRun | None, now: JudgedRun | None, both: Iterable[str]) -> Iterator[FactChangeEntry]:
    """What hosts do far less of than before, as beside a baseline."""
    if not then or not now or then.plan.backend != now.plan.backend or is_busier(now, load(then.result)):
        return
    were, are = measures(then), measures(now, at_best=True)
    for key in dict.fromkeys(key for own in are.values() for key in own):
        ends = {host: (were.get(host, {}).get(key), are.get(host, {}).get(key)) for host in both}
        known = {host: (was, is_now) for host, (was, is_now) in ends.items() if was and is_now}
        for slow in slower_by_kind(key, known, dict.fromkeys(known, "")):
            told = [((host,), change) for host, change in slow.hosts.items()]
            alike = tuple(slow.hosts), ("as much as before", f"{slow.share or 1:.0%} of it")
            for hosts, (before, after) in told if slow.share is None else [alike]:
                yield FactChangeEntry(key=slow.what, before=before, after=after, hosts=hosts, worse=True)
