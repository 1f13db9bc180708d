"""The report, and the only place where a verdict and an exit code are computed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from doctor.errors import EXIT_FAULT, EXIT_INCONCLUSIVE, EXIT_OK
from doctor.facts.smoke import SmokeSeen
from doctor.job.plan import JobPlan
from doctor.model import Finding, Host, HostStatus, Result, Scope, Status, Unreached, Verdict

_WORST = (Status.FAIL, Status.CRASH, Status.WARN, Status.UNKNOWN, Status.PASS, Status.SKIP)


@dataclass(frozen=True, slots=True)
class HostReport:
    name: str
    address: str
    product: str
    status: HostStatus
    reason: str | None


@dataclass(frozen=True, slots=True)
class RunInfo:
    """What differs between two runs over the same recording, and nothing else."""

    command: str
    exam: str
    started: str
    seconds: float
    transport: str


@dataclass(frozen=True, slots=True)
class Rules:
    """How strictly the outcome is judged."""

    essential: frozenset[str] = frozenset()
    strict: bool = False
    need_hosts: int | None = None

    def faults(self, finding: Finding) -> bool:
        """Whether a finding decides the verdict."""
        return finding.status is Status.FAIL or (self.strict and finding.status is Status.WARN)

    def open(self, finding: Finding) -> bool:
        """Whether a finding leaves something essential undecided."""
        return finding.status in (Status.UNKNOWN, Status.CRASH) and finding.check in self.essential


@dataclass(frozen=True, slots=True)
class Report:
    run: RunInfo
    plan: JobPlan
    hosts: tuple[HostReport, ...]
    findings: tuple[Finding, ...]
    results: tuple[Result, ...]
    scopes: Mapping[str, Scope]
    rules: Rules
    notes: tuple[str, ...] = ()
    stopped_by: int | None = None
    """The signal that ended the run early."""
    replayed: bool = False
    outstanding: tuple[str, ...] = ()
    smoke: SmokeSeen | None = None
    no_smoke: str = ""
    """Why there is none, when one was wanted."""
    net_seconds: float | None = None
    """What the mesh took: the first phase of a smoke run."""

    @property
    def healthy_hosts(self) -> tuple[str, ...]:
        return tuple(host.name for host in self.hosts if host.status is HostStatus.HEALTHY)

    @property
    def other_hosts(self) -> tuple[str, ...]:
        return tuple(host.name for host in self.hosts if host.status is not HostStatus.HEALTHY)

    @property
    def verdict(self) -> Verdict:
        if any(self.rules.faults(finding) for finding in self.findings):
            return Verdict.FAULTY
        if self.stopped_by is not None or any(h.status is HostStatus.UNEXAMINED for h in self.hosts):
            return Verdict.INCONCLUSIVE
        if any(self.rules.open(finding) for finding in self.findings):
            return Verdict.INCONCLUSIVE
        return Verdict.HEALTHY

    @property
    def exit_code(self) -> int:
        if self.stopped_by is not None and not self.replayed:
            return 128 + self.stopped_by
        if self.rules.need_hosts is not None:
            return EXIT_OK if self._enough_hosts(self.rules.need_hosts) else EXIT_FAULT
        return {
            Verdict.FAULTY: EXIT_FAULT,
            Verdict.INCONCLUSIVE: EXIT_INCONCLUSIVE,
            Verdict.HEALTHY: EXIT_OK,
        }[self.verdict]

    def _enough_hosts(self, needed: int) -> bool:
        """A fault without culprits is that of the hosts where it shows, everybody's when none is named."""
        healthy = set(self.healthy_hosts)
        for finding in self.findings:
            struck = set(finding.hosts) or {place.host for place in finding.where if place.host}
            if self.rules.faults(finding) and (not struck or struck & healthy):
                return False
        return len(healthy) >= needed

    def counts(self) -> dict[str, int]:
        """(check, host) pairs by status; a cluster check counts once, by its worst."""
        pairs: dict[tuple[str, str], Status] = {}
        for result in self.results:
            cluster = self.scopes.get(result.check) is Scope.CLUSTER
            for host in ("",) if cluster else result.hosts:
                key = (result.check, host)
                known = pairs.get(key)
                if known is None or _WORST.index(result.status) < _WORST.index(known):
                    pairs[key] = result.status
        return {status.value: sum(found is status for found in pairs.values()) for status in Status}


def host_reports(
    hosts: Sequence[Host],
    plan: JobPlan,
    products: Mapping[str, str],
    unreached: Mapping[str, Unreached],
    outstanding: Sequence[str],
    found: Sequence[Finding],
    rules: Rules,
) -> tuple[HostReport, ...]:
    """Each host's own verdict: faulty when a fault names it, healthy when nothing essential is open."""
    blamed: dict[str, str] = {}
    doubtful: dict[str, str] = {}
    for finding in found:
        for name in finding.hosts:
            if rules.faults(finding):
                blamed.setdefault(name, finding.check)
            elif rules.open(finding):
                doubtful.setdefault(name, f"{finding.check} could not be decided: {finding.summary}")
    reports = []
    for host in hosts:
        status, reason = HostStatus.HEALTHY, None
        if host.name in unreached:
            status, reason = HostStatus.UNEXAMINED, unreached[host.name].summary
        elif host.name in outstanding or host.name not in products:
            status, reason = HostStatus.UNEXAMINED, "it had not answered when the run ended"
        elif host.name in blamed:
            status, reason = HostStatus.FAULTY, blamed[host.name]
        elif host.name in doubtful:
            status, reason = HostStatus.UNEXAMINED, doubtful[host.name]
        address = plan.data_address(host.name) or host.address
        reports.append(HostReport(host.name, address, products.get(host.name, "unknown"), status, reason))
    return tuple(reports)
