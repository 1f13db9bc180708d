"""The report of a run for programs: the reports of its parts in one, with whose exit code it is."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

import msgspec

from doctor.errors import EXIT_OK
from doctor.model import HostStatus, Status, Verdict
from doctor.report.files.envelope import Envelope, EnvelopeRun, FindingEntry, HostEntry, counted
from doctor.run.envelope import AttemptEntry, RunPart, RunReport, Whose


def around_report(
    run: EnvelopeRun, code: int, whose: Whose, attempts: Sequence[AttemptEntry], parts: Iterable[bytes]
) -> RunReport:
    """`parts` are the reports of the pre-flight, of looks and of logs in JSON, in the order of their time."""
    read = [msgspec.json.decode(part, type=Envelope) for part in parts]
    findings, hosts = tuple(_numbered(read)), _hosts(read)
    results = tuple(row for each in read for row in each.results)
    number = Counter[str]()
    for each in read:
        number.update(msgspec.to_builtins(each.summary))
    return RunReport(
        run=run,
        verdict=_verdict(code, whose, findings, attempts, read),
        exit_code=code,
        headline=_headline(code, whose, attempts, read),
        summary=counted(hosts, {status.value: number[status.value] for status in Status}, number["checks"]),
        hosts=hosts,
        findings=findings,
        results=results,
        around=RunPart(whose, tuple(attempts)),
    )


def _numbered(read: Iterable[Envelope]) -> Iterator[FindingEntry]:
    """All findings; those of each report have ids of their own in it."""
    before = 0
    for each in read:
        ids = {found.id: f"f{before + place}" for place, found in enumerate(each.findings, 1)}
        before += len(ids)
        for found in each.findings:
            because = ids.get(found.because) if found.because else None
            yield msgspec.structs.replace(found, id=ids[found.id], because=because)


def _hosts(read: Iterable[Envelope]) -> tuple[HostEntry, ...]:
    """A host is as the first report that examined it says, unless a later one names a fault."""
    hosts: dict[str, HostEntry] = {}
    for host in (host for each in read for host in each.hosts):
        before = hosts.get(host.name)
        better = before is not None and before.status is HostStatus.UNEXAMINED
        if before is None or host.status is HostStatus.FAULTY or better:
            hosts[host.name] = host
    return tuple(hosts.values())


def _verdict(
    code: int,
    whose: Whose,
    findings: Iterable[FindingEntry],
    attempts: Iterable[AttemptEntry],
    read: Sequence[Envelope],
) -> Verdict:
    if whose is Whose.PREFLIGHT and code and read:
        return read[-1].verdict
    if any(each.status is Status.FAIL for each in findings):
        return Verdict.FAULTY
    quiet = not any(each.looks or each.losses for each in attempts)
    return Verdict.HEALTHY if code == EXIT_OK and quiet else Verdict.INCONCLUSIVE


def _headline(code: int, whose: Whose, attempts: Sequence[AttemptEntry], read: Sequence[Envelope]) -> str:
    if whose is Whose.PREFLIGHT:
        return f"The command was not started. {read[-1].headline if read else ''}".strip()
    last = attempts[-1]
    if whose is Whose.NOT_STARTED:
        return f"The command was not started. {last.why}"
    if whose is Whose.ENDED:
        return f"doctor ended the job: {last.ended}"
    why = last.why or (last.losses or tuple(each.says for each in last.looks) or ("",))[-1]
    if last.by_others:
        why = f"{last.by_others}."
    return f"The job ended with the exit code {code}{': ' if why else '.'}{why}"
