"""The JSON report that all commands share, schema 2: a contract that scripts depend on.

Fields may be added; no field moves or changes its meaning. A command adds its own data under a key of its
own. Each field has a sentence in fields.txt, which docs/reference and `doctor list schema` show.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar, Literal, TypeVar

import msgspec

from doctor import __version__
from doctor.errors import EXIT_FAULT, EXIT_OK
from doctor.model import Confidence, HostStatus, Remedy, Status, Verdict, View, Waiver
from doctor.text.printable import escaped

E = TypeVar("E", bound=msgspec.Struct)


class ToolName(msgspec.Struct, frozen=True):
    """The program that wrote the report."""

    name: Literal["cluster-doctor"] = "cluster-doctor"
    version: str = __version__


class EnvelopeRun(msgspec.Struct, frozen=True, kw_only=True):
    """The run that the report is about."""

    command: str
    exam: str | None = None
    exam_version: int | None = None
    started: str
    seconds: float = 0.0
    transport: str | None = None
    strict: bool = False


class Counts(msgspec.Struct, frozen=True, kw_only=True):
    """How many hosts, checks and results there were.

    Results are counted per pair of a check and a host; the result of a check of the whole cluster counts
    once. `hang`, `slow`, `explain` and `logs` run no checks: they count findings, and healthy hosts under
    `pass`.
    """

    hosts: int
    healthy: int
    faulty: int
    unexamined: int
    checks: int = 0
    passed: int = msgspec.field(name="pass")
    fail: int
    warn: int
    unknown: int
    skip: int = 0
    crash: int = 0
    waived: int = 0


class HostEntry(msgspec.Struct, frozen=True, kw_only=True):
    """A host of the run."""

    name: str
    address: str | None = None
    product: str | None = None
    status: HostStatus
    reason: str | None = None
    serial: str | None = None
    node: str | None = None
    facts: dict[str, str | int | float | list[str | int]] = {}


class PlaceEntry(msgspec.Struct, frozen=True, kw_only=True):
    """The place of a fault, as exactly as it is known."""

    host: str | None = None
    rank: int | None = None
    pid: int | None = None
    device: int | None = None
    port: int | None = None
    peer: str | None = None


class EvidenceEntry(msgspec.Struct, frozen=True):
    """One piece of evidence."""

    source: str
    text: str
    host: str | None = None


class FindingEntry(msgspec.Struct, frozen=True, kw_only=True):
    """One fault, warning or open question, for all hosts on which it is the same."""

    id: str
    check: str | None = None
    status: Status
    hosts: tuple[str, ...]
    nodeset: str
    subject: str | None
    where: tuple[PlaceEntry, ...]
    rank: int | None = None
    host: str | None = None
    pid: int | None = None
    device: int | None = None
    cause: str | None = None
    view: View = View.HOST
    seen_from: View = View.HOST
    confidence: Confidence
    headline: str
    summary: str
    expected: str = ""
    actual: str = ""
    evidence: tuple[EvidenceEntry, ...]
    remedy: Remedy | None
    verify: str | None = None
    because: str | None = None
    waiver: Waiver | None = None
    open: bool = False


class ResultEntry(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a check, for all hosts on which it is the same."""

    check: str | None = None
    hosts: tuple[str, ...]
    status: Status
    reason: str | None = None


class Envelope(msgspec.Struct, frozen=True, kw_only=True):
    """The fields that the reports of all commands share."""

    KEY: ClassVar[str] = "check"

    schema: Literal[2] = 2
    tool: ToolName = ToolName()
    run: EnvelopeRun
    verdict: Verdict
    exit_code: int
    headline: str
    summary: Counts
    hosts: tuple[HostEntry, ...]
    findings: tuple[FindingEntry, ...]
    results: tuple[ResultEntry, ...]


def as_json(envelope: Envelope) -> bytes:
    return escaped(msgspec.json.format(msgspec.json.encode(envelope), indent=1).decode()).encode() + b"\n"


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


def outcome_of(
    exit_code: int,
    headline: str,
    names: Iterable[str],
    unseen: Mapping[str, str],
    findings: tuple[FindingEntry, ...],
    *,
    proves: bool = True,
) -> dict[str, Any]:
    """The parts of a report that mean the same whichever command wrote it. `proves`: whether a good verdict
    proves hosts healthy.
    """
    verdict = {EXIT_OK: Verdict.HEALTHY, EXIT_FAULT: Verdict.FAULTY}.get(exit_code, Verdict.INCONCLUSIVE)
    hosts = host_entries(names, unseen, findings, verdict if proves else Verdict.INCONCLUSIVE)
    results = result_entries(hosts, findings)
    alike = {"exit_code": exit_code, "headline": headline, "findings": findings}
    return {
        **alike,
        "verdict": verdict,
        "summary": counts(hosts, results),
        "hosts": hosts,
        "results": results,
    }


def result_entries(hosts: Iterable[HostEntry], findings: Iterable[FindingEntry]) -> tuple[ResultEntry, ...]:
    """The results of a command that runs no checks."""
    well = tuple(host.name for host in hosts if host.status is HostStatus.HEALTHY)
    passed = (ResultEntry(hosts=well, status=Status.PASS),) if well else ()
    return (*passed, *(ResultEntry(hosts=f.hosts, status=f.status, reason=f.summary) for f in findings))


def entry_of(kind: type[E], source: object, **others: object) -> E:
    """An entry with these values; its other fields are those that the source has by the same names."""
    alike = {name: getattr(source, name) for name in kind.__struct_fields__ if hasattr(source, name)}
    return kind(**(alike | others))


def counts(hosts: Sequence[HostEntry], results: Iterable[ResultEntry]) -> Counts:
    """The counts of a command that runs no checks: `results` has one for each finding."""
    found = Counter(result.status for result in results)
    well = sum(host.status is HostStatus.HEALTHY for host in hosts)
    return counted(hosts, {status.value: found[status] for status in Status} | {"pass": well})


def counted(hosts: Sequence[HostEntry], results: Mapping[str, int], checks: int = 0) -> Counts:
    """The counts; `results` maps each status to a number."""
    found = {status.value: sum(host.status is status for host in hosts) for status in HostStatus}
    return msgspec.convert({"hosts": len(hosts), "checks": checks, **found, **results}, Counts)
