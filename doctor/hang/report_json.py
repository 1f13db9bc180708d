"""A judgement as JSON."""

from collections.abc import Iterator
from itertools import zip_longest

from msgspec import UNSET

from doctor.errors import EXIT_FAULT
from doctor.hang import envelope
from doctor.hang.advice import advice_of
from doctor.hang.below import joined, sentence
from doctor.hang.judge.judgement import HangCulprit, Judgement, RankStanding, WaitGroup, WeighedOpinion
from doctor.hang.words import group_words, who
from doctor.judge.verdict import Report
from doctor.live.evidence import LiveEvidence
from doctor.live.jobs.job import RunningJob
from doctor.model import Confidence, Remedy, Status
from doctor.report.files.envelope import EnvelopeRun, EvidenceEntry, PlaceEntry, entry_of, outcome_of
from doctor.report.files.json import check_report

BY_HAND = "by-hand"
SURE = {each.value: each for each in Confidence}


def unseen(judgement: Judgement, evidence: LiveEvidence) -> dict[str, str]:
    """Hosts about which the judgement shows nothing, with the reason: no rank runs there, or no answer."""
    jobs = (*judgement.jobs, *((judgement.job,) if judgement.job else ()))
    ranks = {host for job in jobs for host in job.hosts}
    idle = {host: "no rank of the job runs there" for host in evidence.asked if jobs and host not in ranks}
    return idle | dict(evidence.unreached)


def envelope_run(command: str, evidence: LiveEvidence) -> EnvelopeRun:
    transport = evidence.transport or ("local" if evidence.local else None)
    return entry_of(EnvelopeRun, evidence, command=command, transport=transport)


def hang_report(
    judgement: Judgement, evidence: LiveEvidence, checked: Report | None = None
) -> envelope.HangReport:
    """`checked`: the report of the suggested checks, if they were run. Their findings count as well."""
    below = check_report(checked) if checked else None
    outcome = outcome_of(
        EXIT_FAULT if (below is not None and below.exit_code == EXIT_FAULT) else judgement.exit_code,
        sentence(judgement.sentence, checked),
        (*evidence.asked, *(host.name for host in below.hosts)) if below else evidence.asked,
        unseen(judgement, evidence),
        tuple(_findings(judgement)),
    )
    return envelope.HangReport(
        run=envelope_run("hang", evidence),
        hang=hang_part(judgement),
        check=below or UNSET,
        **(joined(outcome, below) if below else outcome),
    )


def hang_part(judgement: Judgement) -> envelope.HangPart:
    advice, stands = advice_of(judgement), judgement.stands
    return entry_of(
        envelope.HangPart,
        judgement,
        state=judgement.verdict,
        standing_still_seconds=stands.still,
        standing_still_at_least=stands.at_least,
        limit_seconds=judgement.limit,
        job=job_entry(judgement.job) if judgement.job else None,
        jobs=tuple(job_entry(job, one) for job, one in zip_longest(judgement.jobs, judgement.each)),
        waiting=tuple(map(_group, stands.groups)),
        chain=tuple(
            envelope.ChainLink(each.rank, each.on, each.operation, each.place) for each in stands.chain
        ),
        ranks=tuple(map(_rank, stands.ranks)),
        unreached=unreached_entries(judgement),
        rights=rights_entry(judgement),
        libraries=tuple(map(_library, judgement.heard)),
        do=advice.do,
        commands=advice.commands,
        next_time=advice.next_time,
    )


def _findings(judgement: Judgement) -> Iterator[envelope.HangFindingEntry]:
    """The culprits of all jobs, then the suspects."""
    judged = judgement.each or (judgement,)
    named = [(one, each, Status.FAIL) for one in judged for each in one.culprits]
    named += [(one, each, Status.UNKNOWN) for one in judged for each in one.suspects]
    for number, (one, each, status) in enumerate(named, 1):
        yield _finding(f"f{number}", one, each, status)


def _finding(id: str, judgement: Judgement, each: HangCulprit, status: Status) -> envelope.HangFindingEntry:
    stands, commands = judgement.stands, advice_of(judgement).commands
    stack = tuple(envelope.FrameEntry(f.name, f.file, f.line, f.source or None) for f in each.frames)
    shown = ((f, f"{f.name}: {f.source}" if f.source else f.name) for f in each.frames)
    seen = [EvidenceEntry(f"{f.file}:{f.line}", words, each.host) for f, words in shown]
    seen += [EvidenceEntry("the ranks that wait", group_words(group)) for group in stands.groups]
    return entry_of(
        envelope.HangFindingEntry,
        each,
        id=id,
        status=status,
        hosts=(each.host,),
        nodeset=each.host,
        subject=who((each,)),
        where=(entry_of(PlaceEntry, each),),
        cause=each.cause.value,
        confidence=SURE.get(judgement.confidence.value if status is Status.FAIL else "", Confidence.SUSPECT),
        headline=f"{who((each,))}: {each.sentence}",
        summary=each.sentence,
        evidence=tuple(seen),
        remedy=Remedy(BY_HAND, commands) if commands else None,
        hang=envelope.HangOfFinding(judgement.job.name if judgement.job else "", each.place or None, stack),
    )


def job_entry(job: RunningJob, one: Judgement | None = None) -> envelope.HangJobEntry:
    first = job.first
    return entry_of(
        envelope.HangJobEntry,
        job,
        launcher=job.launcher or None,
        ranks=job.expected,
        found=len(job.ranks),
        gone=tuple(envelope.GoneRank(rank, host) for rank, host in job.gone),
        master=(first.master if first else "") or (job.name if job.starters else None),
        user=job.owner or None,
        command=(first.command if first else "") or None,
        pids=tuple(each.pid for each in job.ranks or job.starters),
        state=one.verdict if one else None,
        headline=one.sentence if one else None,
    )


def _group(each: WaitGroup) -> envelope.WaitingRanks:
    where = (each.operation or None, each.place or None, each.function or None)
    return envelope.WaitingRanks(each.ranks, each.number, *where, each.noticed)


def unreached_entries(judgement: Judgement) -> tuple[envelope.UnreachedEntry, ...]:
    return tuple(envelope.UnreachedEntry(host, why) for host, why in judgement.unreached)


def rights_entry(judgement: Judgement) -> envelope.RightsEntry | None:
    rights = judgement.rights
    if rights is None:
        return None
    return envelope.RightsEntry(rights.level, rights.stacks, rights.connections, rights.unread, rights.raises)


def _rank(each: RankStanding) -> envelope.HangRankEntry:
    look = each.member.b or each.member.a
    return entry_of(
        envelope.HangRankEntry,
        each,
        host=each.member.host,
        pid=each.member.pid,
        state=look.state if look else None,
        in_collective=each.inside,
        known_by=each.by or None,
        operation=each.operation or None,
        place=each.place or None,
        since_seconds=each.since,
        does=each.doing.words if each.doing else None,
    )


def _library(heard: WeighedOpinion) -> envelope.LibraryEntry:
    said = heard.opinion
    ranks, against = tuple(sorted(said.ranks)), heard.against
    return entry_of(
        envelope.LibraryEntry, said, says=said.words, ranks=ranks, confirms=heard.confirms, against=against
    )
