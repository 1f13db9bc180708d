"""The JSON report that all commands share, schema 2: a contract that scripts depend on.

Fields may be added; no field moves or changes its meaning. A command adds its own data under a key of its
own. Each field has a sentence below it, from which docs/reference and `doctor list schema` are generated.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import ClassVar, Literal

import msgspec

from doctor import __version__
from doctor.errors import EXIT_FAULT, EXIT_OK
from doctor.model import Confidence, HostStatus, Remedy, Status, Verdict, View, Waiver
from doctor.text.printable import escaped


class ToolName(msgspec.Struct, frozen=True):
    """The program that wrote the report."""

    name: Literal["cluster-doctor"] = "cluster-doctor"
    """Always the same."""
    version: str = __version__
    """The version that wrote it."""


class EnvelopeRun(msgspec.Struct, frozen=True, kw_only=True):
    """The run that the report is about."""

    command: str
    """The command that was typed, such as `check`, `preflight`, `hang`, `slow`, `explain` or `logs`."""
    exam: str | None = None
    """The exam; null if the command has none."""
    exam_version: int | None = None
    """The version of its closed list of checks, as 1 in `node/1`; null if its list is open."""
    started: str
    """When it began, in UTC: `2026-11-20T09:00:00Z`."""
    seconds: float = 0.0
    """How long it took; 0 if an older recording does not say."""
    transport: str | None = None
    """How the hosts were reached; null if none were, or if an older recording does not say."""
    strict: bool = False
    """Whether a warning counts as a fault."""


class Counts(msgspec.Struct, frozen=True, kw_only=True):
    """How many hosts, checks and results there were.

    Results are counted per pair of a check and a host; the result of a check of the whole cluster counts
    once. `hang`, `slow`, `explain` and `logs` run no checks: they count findings, and healthy hosts under
    `pass`.
    """

    hosts: int
    """Hosts of the run."""
    healthy: int
    """Hosts that are `healthy`."""
    faulty: int
    """Hosts that are `faulty`."""
    unexamined: int
    """Hosts that are `unexamined`."""
    checks: int = 0
    """Checks that ran."""
    passed: int = msgspec.field(name="pass")
    """Results that passed."""
    fail: int
    """Results that failed: these are faults."""
    warn: int
    """Warnings, and consequences of a fault that a log names."""
    unknown: int
    """Results that could not be decided."""
    skip: int = 0
    """Results of checks that do not apply."""
    crash: int = 0
    """Checks that broke."""
    waived: int = 0
    """Results that failed or warned, and are waived: they do not count as passed."""


class HostEntry(msgspec.Struct, frozen=True, kw_only=True):
    """A host of the run."""

    name: str
    """The name that the user gave it; for logs that were not fetched, the name in the logs."""
    address: str | None = None
    """The address at which other ranks reach it; null if the command does not ask."""
    product: str | None = None
    """`atlas-a2`, `nvidia`, `cpu` and so on; null if the command does not ask."""
    status: HostStatus
    """`healthy` only if the command examined it and proved that nothing is wrong there; logs never do."""
    reason: str | None = None
    """Why it is faulty or unexamined."""
    serial: str | None = None
    """The serial number of the machine; null if it was not read."""
    node: str | None = None
    """If it is a pod: the node on which it runs, as the cluster calls it."""
    facts: dict[str, str | int | float | list[str | int]] = {}
    """The facts that `doctor facts` shows about it, by key; facts that it did not report are left out."""


class PlaceEntry(msgspec.Struct, frozen=True, kw_only=True):
    """The place of a fault, as exactly as it is known."""

    host: str | None = None
    """The host."""
    rank: int | None = None
    """The rank."""
    pid: int | None = None
    """The process."""
    device: int | None = None
    """The number of the device."""
    port: int | None = None
    """The port."""
    peer: str | None = None
    """The other end of a connection."""


class EvidenceEntry(msgspec.Struct, frozen=True):
    """One piece of evidence."""

    source: str
    """The command, or the file and line, that showed it."""
    text: str
    """What it showed."""
    host: str | None = None
    """The host on which it was seen, if it was a single one."""


class FindingEntry(msgspec.Struct, frozen=True, kw_only=True):
    """One fault, warning or open question, for all hosts on which it is the same."""

    id: str
    """Unique in this report: `f1`."""
    check: str | None = None
    """The check that found it; null for a culprit of `hang` and for a finding from logs."""
    status: Status
    """`fail` is a fault; `warn` does not change the verdict, unless the run is strict; `unknown` could not be
    decided; `crash` means that the check broke; `waived`: it failed or warned, and is accepted until a
    date."""
    hosts: tuple[str, ...]
    """The culprits; for a consequence, the hosts on which it shows; empty if no host is guilty."""
    nodeset: str
    """The same hosts, folded: `node[1-4]`."""
    subject: str | None
    """The part that is at fault: `device 3`, `rank 5`, `port 29500`, `node1 -> node3:29500`."""
    where: tuple[PlaceEntry, ...]
    """Each place that is at fault."""
    rank: int | None = None
    """The rank; null if no place names one, or if several are named."""
    host: str | None = None
    """The host; null if there are several, or none."""
    pid: int | None = None
    """The process; null if no place names one, or if several are named."""
    device: int | None = None
    """The device; null if no place names one, or if several are named."""
    cause: str | None = None
    """What the culprit did, as a word that does not change: for `hang` a word such as `sleeps`, for logs the
    id of the symptom; null if a check found it."""
    view: View = View.HOST
    """Whether the host or the container is at fault."""
    seen_from: View = View.HOST
    """Whether it was seen from the host or from inside the container."""
    confidence: Confidence
    """How certain it is."""
    headline: str
    """The culprit and the fault, in a few words."""
    summary: str
    """What is wrong, in a sentence."""
    expected: str = ""
    """What should have been seen."""
    actual: str = ""
    """What was seen instead."""
    evidence: tuple[EvidenceEntry, ...]
    """What shows it."""
    remedy: Remedy | None
    """What to do, with the commands to type; null if nothing is suggested."""
    verify: str | None = None
    """The command that looks at it again, and fails as long as it is there; null if nothing tells how the
    hosts are reached, and for a consequence of another finding."""
    because: str | None = None
    """The `id` of the finding that caused it."""
    waiver: Waiver | None = None
    """The waiver that covers it; null if none does. Unless the status is `waived`, it has expired."""
    open: bool = False
    """Whether it leaves undecided what must be decided: the run is then inconclusive, unless it is faulty."""


class ResultEntry(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a check, for all hosts on which it is the same."""

    check: str | None = None
    """The check; null if the command runs none."""
    hosts: tuple[str, ...]
    """The hosts that were examined; empty if the result is not about single hosts."""
    status: Status
    """The outcome."""
    reason: str | None = None
    """Why, unless it passed."""


class Envelope(msgspec.Struct, frozen=True, kw_only=True):
    """The fields that the reports of all commands share."""

    KEY: ClassVar[str] = "check"
    """The key of the command's own data; in JUnit and Prometheus, the name of findings without a check."""

    schema: Literal[2] = 2
    """The version of this format."""
    tool: ToolName = ToolName()
    """The program that wrote it."""
    run: EnvelopeRun
    """The run: its command, and when and how it ran."""
    verdict: Verdict
    """`faulty` if a fault is proved, `healthy` if nothing is wrong as far as the command looks, or
    `inconclusive`."""
    exit_code: int
    """The exit code of the command; `doctor demo` itself ends with 0."""
    headline: str
    """The verdict in a sentence."""
    summary: Counts
    """The counts."""
    hosts: tuple[HostEntry, ...]
    """Each host; those that were asked come in the order in which they were named."""
    findings: tuple[FindingEntry, ...]
    """What is wrong or undecided, worst first."""
    results: tuple[ResultEntry, ...]
    """The result of everything that was examined."""


def as_json(envelope: Envelope) -> bytes:
    text = msgspec.json.encode(envelope)
    return escaped(msgspec.json.format(text, indent=1).decode()).encode() + b"\n"


def verdict_of(exit_code: int) -> Verdict:
    """The verdict of a command that only has an exit code."""
    return {EXIT_OK: Verdict.HEALTHY, EXIT_FAULT: Verdict.FAULTY}.get(exit_code, Verdict.INCONCLUSIVE)


def only(where: Iterable[PlaceEntry]) -> PlaceEntry:
    """The fields on which all places agree: null if two differ, or if no place has the field."""

    def one(name: str) -> str | int | None:
        found = {getattr(place, name) for place in places} - {None}
        return found.pop() if len(found) == 1 else None

    places = tuple(where)
    return msgspec.convert({name: one(name) for name in PlaceEntry.__struct_fields__}, PlaceEntry)


def host_entries(
    names: Iterable[str], unseen: Mapping[str, str], findings: Iterable[FindingEntry], verdict: Verdict
) -> tuple[HostEntry, ...]:
    """The hosts of a command that runs no checks. A host that no fault names is healthy only if the verdict
    is healthy; `unseen` maps the hosts of which nothing was seen to the reason.
    """
    findings = tuple(findings)
    guilty = {host: each.headline for each in findings if each.status is Status.FAIL for host in each.hosts}
    undecided = {
        host: each.headline for each in findings if each.status is Status.UNKNOWN for host in each.hosts
    }
    entries = []
    for name in dict.fromkeys((*names, *unseen, *(host for each in findings for host in each.hosts))):
        status, reason = HostStatus.UNEXAMINED, unseen.get(name)
        if name in guilty:
            status, reason = HostStatus.FAULTY, guilty[name]
        elif reason is None and name in undecided:
            reason = undecided[name]
        elif reason is None and verdict is Verdict.HEALTHY:
            status = HostStatus.HEALTHY
        elif reason is None:
            reason = "no fault names it, and nothing proves it healthy: doctor check examines it"
        entries.append(HostEntry(name=name, status=status, reason=reason))
    return tuple(entries)


def result_entries(hosts: Iterable[HostEntry], findings: Iterable[FindingEntry]) -> tuple[ResultEntry, ...]:
    """The results of a command that runs no checks."""
    well = tuple(host.name for host in hosts if host.status is HostStatus.HEALTHY)
    passed = (ResultEntry(hosts=well, status=Status.PASS),) if well else ()
    return (*passed, *(ResultEntry(hosts=f.hosts, status=f.status, reason=f.summary) for f in findings))


def counts(hosts: Sequence[HostEntry], results: Iterable[ResultEntry]) -> Counts:
    """The counts of a command that runs no checks: `results` has one for each finding."""
    found = Counter(result.status for result in results)
    well = sum(host.status is HostStatus.HEALTHY for host in hosts)
    return counted(hosts, {status.value: found[status] for status in Status} | {"pass": well})


def counted(hosts: Sequence[HostEntry], results: Mapping[str, int], checks: int = 0) -> Counts:
    """The counts; `results` maps each status to a number."""
    found = {status.value: sum(host.status is status for host in hosts) for status in HostStatus}
    return msgspec.convert({"hosts": len(hosts), "checks": checks, **found, **results}, Counts)
