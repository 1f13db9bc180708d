"""The report, and the only place where a verdict and an exit code are computed.

A host is healthy only if all of this is proved:

- the host answered, and its answer was read completely;
- no fault names it that is not waived;
- each essential check was decided for it, and no check broke on it;
- what this job in particular needs was decided too (a firewall's limit, a Python that starts);
- each name that was given with --only examined something;
- if the job uses the network of its NPUs, that was read, or the last smoke run passed over it;
- every source of checks could be loaded;
- if a smoke run is wanted, the host took part in the last one, which passed, and no run named the host.

An open question that concerns no host in particular counts against all. The verdict is healthy if every host
is healthy and no fault lacks a culprit. Exit code 0 needs that, or as many healthy hosts as --need-hosts asks
for; lists of healthy hosts and launch lines hold no others.

If only the findings of an earlier run were looked at again, they decide: all must be fixed, and nothing new
found.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from doctor.errors import EXIT_FAULT, EXIT_INCONCLUSIVE, EXIT_OK, DoctorError
from doctor.facts.smoke import JudgedRun
from doctor.floors import Floor
from doctor.job.plan import JobPlan
from doctor.judge.again import Recheck, RecheckState
from doctor.judge.fact_table import FactRow
from doctor.judge.hardware import Hardware
from doctor.judge.npu_network import why_unread
from doctor.judge.playbook import ESSENTIAL, NPU_NETWORK, matches
from doctor.judge.selection import InapplicableSelection
from doctor.mesh.result import MeshResult
from doctor.model import Finding, Host, HostStatus, Problem, Result, Scope, Status, UnreachedHost, Verdict
from doctor.smoke.soak import Soak
from doctor.text.addresses import is_address
from doctor.text.grouped import grouped
from doctor.text.nodeset import fold, is_host
from doctor.transport.way import Way

_WORST = tuple(Status[name] for name in ("FAIL", "CRASH", "WARN", "UNKNOWN", "WAIVED", "PASS", "SKIP"))


@dataclass(frozen=True, slots=True)
class HostReport:
    name: str
    address: str
    product: str
    status: HostStatus
    reason: str | None
    node: str | None = None


@dataclass(frozen=True, slots=True)
class RunInfo:
    """Everything that may differ between two runs over the same recording."""

    command: str
    exam: str
    started: str
    seconds: float
    transport: str
    hosts_from: str = ""
    """Who named the hosts, if it was not the command line."""
    way: Way | None = None
    """How the hosts were reached, for commands to type; older recordings do not have it."""
    exam_version: int | None = None
    stopped_by: int | None = None
    """The signal that ended the run early."""
    outstanding: tuple[str, ...] = ()
    """The hosts that had not answered when it ended."""
    replayed: bool = False


@dataclass(frozen=True, slots=True)
class ExaminedChecks:
    """What is known of the checks of a run, by their ids."""

    scopes: Mapping[str, Scope] = field(default_factory=dict)
    of_one_host: frozenset[str] = frozenset()
    """The checks that find the same on a host of this job if it is examined alone."""
    logged: frozenset[str] = frozenset()
    """The checks of the kernel's log, which goes back to before a repair."""
    unapplied: tuple[InapplicableSelection, ...] = ()
    """What was chosen by name, and applied to no host."""
    none_applied: bool = False
    """Whether nothing that was chosen applied to a host."""


@dataclass(frozen=True, slots=True)
class Training:
    """The smoke runs of a run, and what they do not prove."""

    runs: tuple[JudgedRun, ...] = ()
    not_made: str = ""
    """Why there is no smoke run, if one was wanted."""
    untrained: Mapping[str, str] = field(default_factory=dict)
    """Host -> why no smoke run proves it healthy, if one was wanted."""
    net_seconds: float | None = None
    """How long the mesh took: the first phase of a smoke run."""
    floor: Floor | None = None
    soak: Soak | None = None


@dataclass(frozen=True, slots=True)
class SeenHosts:
    """What was seen on the hosts, apart from what the checks make of it."""

    facts: tuple[FactRow, ...] = ()
    unread: tuple[str, ...] = ()
    """What of these facts could not be read, so that hosts were not compared by it."""
    running: tuple[str, ...] = ()
    """Hosts that already ran a job of the user, other than the one that examines itself."""
    inside: frozenset[str] = frozenset()
    """The hosts that were seen from inside a container."""
    hardware: Mapping[str, Hardware] = field(default_factory=dict)
    """Host -> its serial numbers, slots and switch ports, for hosts that answered."""
    mesh: MeshResult | None = None
    """Who reached whom, if that was tried."""


@dataclass(frozen=True, slots=True)
class Rules:
    """How strictly the outcome is judged."""

    essential: frozenset[str] = frozenset()
    strict: bool = False
    need_hosts: int | None = None
    unloaded: tuple[str, ...] = ()
    """Sources of checks that could not be loaded, each with the reason: their checks were not run."""
    tentative: bool = False
    """Judged to choose who takes part in the smoke run: none is required yet, and a broken check does not
    count against a host."""
    npu_network: frozenset[str] = frozenset()
    """Hosts whose NPU network the job uses and no smoke run has proved: reading it is essential there."""

    def faults(self, finding: Finding) -> bool:
        """Whether a finding decides the verdict."""
        return finding.status is Status.FAIL or (self.strict and finding.status is Status.WARN)

    def open(self, finding: Finding) -> bool:
        """Whether a finding leaves something undecided that must be decided."""
        if finding.status is Status.CRASH:
            return not self.tentative
        return finding.status is Status.UNKNOWN and (
            finding.check in self.essential
            or (finding.essential and not self.tentative)
            or bool(self.unread_on(finding))
        )

    def unread_on(self, finding: Finding) -> tuple[str, ...]:
        """The hosts whose NPU network the finding leaves open."""
        if finding.status is not Status.UNKNOWN or finding.check not in NPU_NETWORK:
            return ()
        return tuple(host for host in finding.hosts if host in self.npu_network)


def essential_ids(ids: Iterable[str], added: Sequence[str]) -> frozenset[str]:
    """The ids that must be decided, of those that are run; `added` are globs of the exam."""
    return frozenset(id for id in ids if matches(id, (*ESSENTIAL, *added)))


def refuse_without_essentials(ids: Sequence[str]) -> None:
    """Refuse a missing essential check: it finds nothing, so there would be no verdict."""
    lost = [glob for glob in ESSENTIAL if not any(matches(id, [glob]) for id in ids)]
    if lost:
        raise DoctorError(
            f"These checks are not there: {', '.join(lost)}.",
            "The installation is damaged: install cluster-doctor again.",
        )


@dataclass(frozen=True)
class Report:
    """Values derived from all results are computed once: formats need them for each of thousands of hosts."""

    run: RunInfo
    plan: JobPlan
    hosts: tuple[HostReport, ...]
    findings: tuple[Finding, ...]
    results: tuple[Result, ...]
    rules: Rules
    checks: ExaminedChecks = ExaminedChecks()
    training: Training = Training()
    seen: SeenHosts = SeenHosts()
    notes: tuple[str, ...] = ()
    again: tuple[Recheck, ...] = ()
    """What has become of the findings of an earlier run, if only these were looked at again: they decide."""
    again_from: str = ""
    """The file with the earlier run."""

    @cached_property
    def by_id(self) -> Mapping[str, Finding]:
        return {finding.id: finding for finding in self.findings}

    @cached_property
    def faults(self) -> tuple[Finding, ...]:
        return tuple(filter(self.rules.faults, self.findings))

    @cached_property
    def roots(self) -> list[Finding]:
        """The faults without those that another fault explains on all of their hosts."""
        caused = {finding.id: {*finding.hosts} for finding in self.faults}
        return [f for f in self.faults if f.because not in caused or {*f.hosts} - caused[f.because]]

    @cached_property
    def trouble(self) -> tuple[Finding, ...]:
        """The findings except those that could not be decided, and those that are waived."""
        aside = (Status.UNKNOWN, Status.WAIVED)
        return tuple(finding for finding in self.findings if finding.status not in aside)

    @cached_property
    def waived(self) -> tuple[Finding, ...]:
        return tuple(finding for finding in self.findings if finding.status is Status.WAIVED)

    @property
    def warned_checks(self) -> tuple[str, ...]:
        """The checks that warn, in the order of the findings."""
        return tuple(dict.fromkeys(each.check for each in self.findings if each.status is Status.WARN))

    @cached_property
    def unheard(self) -> set[str]:
        """Hosts that could not be reached."""
        places = (place for f in self.findings if f.check == "host-unreachable" for place in f.where)
        return {place.host for place in places if place.host}

    @cached_property
    def problems(self) -> Mapping[tuple[str, str], Sequence[Problem]]:
        """Check and host -> the problems found there."""
        found = ((each, each.problem) for each in self.results if each.problem)
        return grouped(((each.check, host), problem) for each, problem in found for host in each.hosts)

    @cached_property
    def healthy_hosts(self) -> tuple[str, ...]:
        return tuple(host.name for host in self.hosts if host.status is HostStatus.HEALTHY)

    @cached_property
    def other_hosts(self) -> tuple[str, ...]:
        return tuple(host.name for host in self.hosts if host.status is not HostStatus.HEALTHY)

    @cached_property
    def called(self) -> Mapping[str, str]:
        """Address -> own name, for hosts named by their addresses, as servers of a rank table are."""
        told = next((row.values for row in self.seen.facts if row.key == "host_name"), {})
        own = {host.name: str(told[host.name]) for host in self.hosts if host.name in told}
        known = {host: name for host, name in own.items() if is_address(host) and not is_address(name)}
        return {host: name for host, name in known.items() if is_host(name)}

    @cached_property
    def silent(self) -> dict[str, str]:
        """Hosts that reported nothing about themselves -> why."""
        told = {host for row in self.seen.facts for host in row.values}
        return {host.name: host.reason or "unknown" for host in self.hosts if host.name not in told}

    @cached_property
    def npu_network_unread(self) -> str:
        """The sentence that the network of NPUs was not examined, where and why; empty if nothing is open."""
        unread = {host: None for finding in self.findings for host in self.rules.unread_on(finding)}
        if not unread or self.faults:
            return ""
        return _unread_sentence(self.findings, tuple(unread), f" on {fold(unread)}")

    @property
    def npu_network_left_out(self) -> tuple[str, ...]:
        """Those left out on request, if the job uses the network without a proof."""
        if not self.rules.npu_network or self.plan.of_node or self.run.command.startswith("ranktable"):
            return ()
        return tuple(id for id in NPU_NETWORK if id not in self.checks.scopes)

    @cached_property
    def broken(self) -> bool:
        """Whether a check broke or could not be loaded: this is always reported."""
        return bool(self.rules.unloaded) or any(found.status is Status.CRASH for found in self.findings)

    @cached_property
    def verdict(self) -> Verdict:
        found = {each.now for each in self.again}
        if self.faults or RecheckState.STILL in found:
            return Verdict.FAULTY
        if found and self.run.stopped_by is None:
            return Verdict.INCONCLUSIVE if RecheckState.OPEN in found else Verdict.HEALTHY
        if self.run.stopped_by is not None or self.other_hosts:
            return Verdict.INCONCLUSIVE
        return Verdict.HEALTHY

    @property
    def exit_code(self) -> int:
        if self.run.stopped_by is not None and not self.run.replayed:
            return 128 + self.run.stopped_by
        if self.rules.need_hosts is not None and self.run.stopped_by is None:
            return EXIT_OK if self.enough_hosts(self.rules.need_hosts) else EXIT_FAULT
        return {
            Verdict.FAULTY: EXIT_FAULT,
            Verdict.INCONCLUSIVE: EXIT_INCONCLUSIVE,
            Verdict.HEALTHY: EXIT_OK,
        }[self.verdict]

    def enough_hosts(self, needed: int) -> bool:
        """A fault without culprits counts against the hosts that show it, or against all if it names none."""
        healthy = set(self.healthy_hosts)
        for finding in self.faults:
            struck = set(finding.hosts) or {place.host for place in finding.where if place.host}
            if not struck or struck & healthy:
                return False
        return len(healthy) >= needed

    def counts(self) -> dict[str, int]:
        """(check, host) pairs by status; a cluster check counts once, by its worst."""
        pairs: dict[tuple[str, str], Status] = {}
        for result in self.results:
            of_all = result.problem is not None and not result.hosts
            cluster = self.checks.scopes.get(result.check) is Scope.CLUSTER or of_all
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
    unreached: Mapping[str, UnreachedHost],
    outstanding: Sequence[str],
    found: Sequence[Finding],
    rules: Rules,
    untrained: Mapping[str, str],
    unapplied: Sequence[InapplicableSelection] = (),
) -> tuple[HostReport, ...]:
    """Each host's own verdict: healthy only if nothing speaks against it and nothing is left open."""
    blamed: dict[str, str] = {}
    doubtful: dict[str, str] = {}
    for finding in found:
        if rules.faults(finding):
            for name in finding.hosts:
                blamed.setdefault(name, finding.check)
        elif rules.open(finding):
            always = finding.check in rules.essential or finding.essential
            unread = () if always else rules.unread_on(finding)
            for name in unread or finding.hosts or [host.name for host in hosts]:
                doubtful.setdefault(
                    name, _unread_sentence(found, (name,)) if unread else _undecided_sentence(finding)
                )
    reports = []
    for host in hosts:
        status, reason = HostStatus.UNEXAMINED, None
        if host.name in unreached:
            reason = unreached[host.name].summary
        elif host.name in outstanding or host.name not in products:
            reason = "it had not answered when the run ended"
        elif host.name in blamed:
            status, reason = HostStatus.FAULTY, blamed[host.name]
        elif host.name in doubtful:
            reason = doubtful[host.name]
        elif unapplied:
            reason = str(unapplied[0])
        elif host.name in untrained:
            reason = untrained[host.name]
        elif rules.unloaded and not rules.tentative:
            reason = rules.unloaded[0]
        else:
            status = HostStatus.HEALTHY
        address = plan.data_address(host.name) or host.address
        product = products.get(host.name, "unknown")
        reports.append(HostReport(host.name, address, product, status, reason, host.node))
    return tuple(reports)


def _unread_sentence(found: Sequence[Finding], hosts: Sequence[str], where: str = "") -> str:
    why, then = why_unread(found, hosts)
    return f"the NPU network was not examined{where} ({why})" + (f": {then}" if then else "")


def _undecided_sentence(finding: Finding) -> str:
    if finding.status is Status.CRASH:
        return f"{finding.check} broke: {finding.summary}"
    return f"{finding.check} could not be decided: {finding.summary}"


def untrained(hosts: Iterable[Host], runs: Sequence[JudgedRun], not_made: str) -> dict[str, str]:
    """Host -> why no smoke run proves it healthy; `not_made` is the reason if there was none."""
    names = [host.name for host in hosts]
    if not runs:
        return dict.fromkeys(names, f"no smoke run was made: {not_made}")
    last, named = runs[-1], {host for run in runs for host in run.named}
    reasons = {}
    for name in names:
        if name in named:
            reasons[name] = "a smoke run named it"
        elif name not in last.plan.hosts:
            reasons[name] = "it did not take part in the last smoke run"
        elif not last.passed:
            reasons[name] = "the last smoke run did not pass"
    return reasons
