"""The judgement of a job that has launchers and no rank yet."""

from collections.abc import Iterator

from doctor.hang.judge.case import LOOKS_APART
from doctor.hang.judge.judgement import HangFinding, HangState, Judgement, Standstill, StartFault
from doctor.hang.judge.rights import rights_of
from doctor.hang.judge.start_faults import faults
from doctor.live.evidence import LiveEvidence
from doctor.live.jobs.job import RunningJob
from doctor.live.jobs.starting import StartingJob, has_come
from doctor.live.reach import reach_of
from doctor.text.nodeset import fold


def job_of(start: StartingJob) -> RunningJob:
    first, seen = start.starters[0], {host.host: host for host in start.seen}
    begun = [seen[each.host].at - each.member.age for each in start.starters if seen[each.host].at]
    return RunningJob(
        name=f"{first.master.address}:{first.master.port}",
        launcher=start.name,
        world=start.nodes * first.each if first.each else None,
        ranks=(),
        helpers=(),
        hosts=tuple(host.host for host in start.seen if host.host in start.hosts),
        started=min(begun, default=None),
        age=start.age,
        starters=tuple(each.member for each in start.starters),
    )


def judge_start(
    evidence: LiveEvidence, start: StartingJob, jobs: tuple[RunningJob, ...], limit: float
) -> Judgement:
    job = job_of(start)
    apart = [host.apart for host in start.seen if host.apart > 0]
    found = [*faults(start, min(apart, default=LOOKS_APART), sorted(evidence.unreached))]
    said = f"{start.name} on {fold(start.hosts)} waits for each other; nothing shows for whom."
    lead = found[0] if found else StartFault((), said)
    verdict = _verdict(start, lead, limit)
    return Judgement(
        verdict=verdict,
        started=evidence.started,
        sentence=_sentence(start, lead, verdict),
        job=job,
        jobs=jobs,
        finding=HangFinding(lead.named, lead.confidence),
        start=lead,
        stands=Standstill(still=start.age),
        limit=limit,
        unreached=tuple(sorted(evidence.unreached.items())),
        rights=rights_of(evidence, job),
        notes=tuple(_notes(start, found[1:])),
        reach=reach_of(evidence),
    )


def _verdict(start: StartingJob, lead: StartFault, limit: float) -> HangState:
    if lead.lasts:
        return HangState.HANG
    if lead.works or start.age < limit:
        return HangState.WAITS
    return HangState.HANG if lead.named and not lead.unproved else HangState.UNKNOWN


def _sentence(start: StartingJob, lead: StartFault, verdict: HangState) -> str:
    if not lead.named:
        said = lead.sentence
        return said if verdict is not HangState.WAITS else f"{said.removesuffix('.')}; this may be normal."
    there = f"{len(start.starters)} of {start.nodes} launchers are there"
    whom = fold([each.host for each in lead.named])
    said = f"The job does not start ({there}): {whom} {'is' if len(lead.named) == 1 else 'are'} the cause"
    if verdict is HangState.WAITS:
        return f"The job is starting ({there}) and waits for {whom}; this may be normal."
    return (
        f"{said}."
        if verdict is HangState.HANG
        else f"The job waits for {whom}, whose launcher may be at work."
    )


def _notes(start: StartingJob, more: list[StartFault]) -> Iterator[str]:
    waits = [each.host for each in start.starters if has_come(each)]
    if waits:
        yield f"{start.name} waits on {fold(waits)} for the others"
    if start.starters[0].node is not None:
        numbers = ", ".join(f"{each.node} on {each.host}" for each in start.starters[:8])
        yield f"{start.nodes} launchers are asked for; node ranks: {numbers}"
    for fault in more:
        yield from (f"{each.host}: {each.sentence}" for each in fault.named[:4])
        if not fault.named:
            yield fault.sentence.removesuffix(".")
