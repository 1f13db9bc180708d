"""A judgement of `doctor slow` as JSON."""

from msgspec import convert

from doctor.hang.envelope import FrameEntry
from doctor.hang.report_json import envelope_run, job_entry, rights_entry, unreached_entries, unseen
from doctor.model import Confidence, Status
from doctor.report.files.envelope import EvidenceEntry, PlaceEntry, entry_of, outcome_of
from doctor.slow.advice import advice
from doctor.slow.envelope import DeviceEntry, PaceEntry, SlowFindingEntry, SlowOfFinding, SlowPart, SlowReport
from doctor.slow.evidence import SlowEvidence
from doctor.slow.judge.judgement import RankShare, SlowCulprit, SlowJudgement
from doctor.slow.judge.words import who
from doctor.text.nodeset import fold


def slow_report(judgement: SlowJudgement, evidence: SlowEvidence) -> SlowReport:
    findings = tuple(_finding(f"f{number}", each) for number, each in enumerate(judgement.late, 1))
    silent = unseen(judgement.hang, evidence)
    outcome = outcome_of(judgement.exit_code, judgement.sentence, evidence.asked, silent, findings)
    return SlowReport(run=envelope_run("slow", evidence), slow=_part(judgement), **outcome)


def _part(judgement: SlowJudgement) -> SlowPart:
    return entry_of(
        SlowPart,
        judgement,
        hang=judgement.hang.verdict,
        job=job_entry(judgement.job) if judgement.job else None,
        jobs=tuple(map(job_entry, judgement.jobs)),
        sampled_seconds=round(judgement.seconds, 3),
        known_by=judgement.by or None,
        maybe=judgement.maybe or None,
        ranks=tuple(map(_pace, judgement.ranks)),
        unreached=unreached_entries(judgement.hang),
        rights=rights_entry(judgement.hang),
        commands=tuple(line for each in judgement.late for line in advice(each, judgement.hang.reach)),
    )


def _pace(each: RankShare) -> PaceEntry:
    host, pid = each.key
    device = convert(each.device, DeviceEntry, from_attributes=True) if each.device else None
    place = each.place or None
    return PaceEntry(rank=each.rank, host=host, pid=pid, waits=each.waits, place=place, device=device)


def _finding(id: str, late: SlowCulprit) -> SlowFindingEntry:
    where = tuple(PlaceEntry(host=late.host, rank=rank, pid=late.pid) for rank in late.ranks or (None,))
    if late.peers:
        where = tuple(PlaceEntry(host=late.host, peer=peer) for peer in late.peers)
    at = late.where
    seen = [EvidenceEntry(f"{at.frame.file}:{at.frame.line}", at.frame.source, late.host)] if at else []
    return SlowFindingEntry(
        id=id,
        status=Status.WARN,
        hosts=late.hosts,
        nodeset=fold(late.hosts),
        subject=who(late),
        where=where,
        rank=late.ranks[0] if len(late.ranks) == 1 else None,
        host=late.host if len(late.hosts) == 1 else None,
        pid=late.pid,
        cause=late.reason.value if late.reason else late.lag.value,
        confidence=Confidence.STRONG if late.certain else Confidence.SUSPECT,
        headline=f"{who(late)}: {late.sentence}",
        summary=late.sentence,
        evidence=(*seen, *(EvidenceEntry("the samples", words, late.host) for words in late.why)),
        remedy=None,
        slow=_of_finding(late),
    )


def _of_finding(late: SlowCulprit) -> SlowOfFinding:
    frame = late.where.frame if late.where else None
    return entry_of(
        SlowOfFinding,
        late,
        share=round(late.share, 4),
        share_least=round(late.least, 4),
        line=FrameEntry(frame.name, frame.file, frame.line, frame.source or None) if frame else None,
        line_share=late.where.share if late.where else None,
        line_others=late.where.others if late.where else None,
    )
