"""The report of logs for programs."""

import math

from msgspec import UNSET

from doctor.errors import EXIT_FAULT
from doctor.judge.verdict import Report
from doctor.logs import envelope
from doctor.logs.explanation import Explanation, headline, last_words, place_of, whom
from doctor.logs.model import Curve, LogFile, LogLine, LogOutcome, Role
from doctor.model import Status
from doctor.report.files.envelope import EnvelopeRun, EvidenceEntry, PlaceEntry, entry_of, only, outcome_of
from doctor.report.files.json import check_report
from doctor.text.nodeset import fold


def logs_report(explained: Explanation, checked: Report | None = None) -> envelope.LogsReport:
    """`checked` is the report of `--check`, if it was requested."""
    findings = tuple(_finding(explained, place) for place in range(len(explained.conclusion.charges)))
    seen = (*explained.fetched, *(file.who.host for file in explained.logs.files if file.who.host))
    said = last_words(explained)  # no log proves health
    return envelope.LogsReport(
        run=entry_of(EnvelopeRun, explained, transport=explained.transport or None),
        logs=_part(explained),
        check=check_report(checked) if checked else UNSET,
        **outcome_of(explained.exit_code, said, seen, explained.silent, findings, proves=False),
    )


def _part(explained: Explanation) -> envelope.LogsPart:
    found, logs = explained.conclusion, explained.logs
    roots = [found.charges[root] for root in explained.roots]
    only_victims = bool(roots) and all(each.role is Role.CONSEQUENCE and not each.who for each in roots)
    return entry_of(
        envelope.LogsPart,
        found,
        outcome=LogOutcome.UNKNOWN if only_victims else found.outcome,
        folder=explained.folder or None,
        commands=explained.proves(),
        ranks=tuple(sorted({rank for file in logs.files for rank in file.ranks})),
        timeline=tuple(envelope.TimelineEntry(at, says) for at, says in found.story),
        odd=tuple(map(_line, found.odd)),
        telling=found.telling or None,
        progress=tuple(map(_line, explained.progress)),
        open=(*found.open, *explained.not_found),
        unread=explained.unread,
        files=tuple(map(_file, logs.files)),
        curves=tuple(map(_curve, logs.curves)),
        fetched_from=explained.fetched,
    )


def _finding(explained: Explanation, place: int) -> envelope.LogFindingEntry:
    charge = explained.conclusion.charges[place]
    hosts = tuple(dict.fromkeys(each.host for each in charge.who if each.host))
    where = tuple(
        PlaceEntry(host=each.host, rank=each.rank, pid=each.pid, device=each.device, peer=each.address)
        for each in charge.who
    )
    at, proof = only(where), explained.proof_of(place)
    decided = Status.FAIL if charge.because is None else Status.WARN
    return entry_of(
        envelope.LogFindingEntry,
        at,
        id=f"f{place + 1}",
        status=decided if explained.exit_code == EXIT_FAULT else Status.UNKNOWN,
        hosts=hosts,
        nodeset=fold(hosts),
        subject=whom(charge.who) or None,
        where=where,
        cause=charge.symptom or charge.brief or None,
        confidence=charge.confidence,
        headline=headline(charge),
        summary=headline(charge),
        evidence=tuple(EvidenceEntry(place_of(line), line.text, line.who.host) for line in charge.lines),
        remedy=charge.remedy,
        because=None if charge.because is None else f"f{charge.because + 1}",
        logs=entry_of(
            envelope.LogsOfFinding,
            charge,
            known_by=charge.how,
            proved=envelope.ProofEntry(proof.proved, proof.says) if proof else None,
        ),
    )


def _line(line: LogLine) -> envelope.LineEntry:
    return envelope.LineEntry(line.file, line.number, line.text, line.who.rank, line.at)


def _file(file: LogFile) -> envelope.LogFileEntry:
    who, problem = file.who.host, file.problem or None
    return envelope.LogFileEntry(file.name, file.size, file.lines, file.forms, who, file.ranks, problem)


def _curve(curve: Curve) -> envelope.CurveEntry:
    """NaN and infinities become null: JSON has no word for them."""
    losses = tuple(loss if math.isfinite(loss) else None for loss in curve.losses)
    return envelope.CurveEntry(curve.file, curve.who.rank, curve.who.host, curve.steps, losses, curve.total)
