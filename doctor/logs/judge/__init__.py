"""Concludes from logs who is to blame. Pure: the same logs in any order give the same conclusion.

A symptom never accuses an innocent rank: if the logs do not suffice, the conclusion says so.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from doctor.logs.judge.behind import fell_silent
from doctor.logs.judge.blame import Blame
from doctor.logs.judge.case import Case, Event, case_of
from doctor.logs.judge.decide import decide
from doctor.logs.judge.kinds import Kind
from doctor.logs.judge.known import Known, KnownHost, known_of
from doctor.logs.judge.openings import openings
from doctor.logs.judge.parties import is_name, key
from doctor.logs.judge.readout import readout
from doctor.logs.judge.story import story_of
from doctor.logs.judge.words import aftermath, told
from doctor.logs.model import Charge, Conclusion, Logs, Outcome, Role
from doctor.model import Confidence

__all__ = ["Known", "KnownHost", "conclude", "known_of"]

MOST_TOLD = 10
"""Earlier attempts that are reported; if there are more, the first and the last ones."""
MOST_ODD = 10
MOST_FOLLOW = 12
"""Consequences that are reported."""
_CAUSES = {Role.ROOT, Role.NAMES}


def conclude(logs: Logs, known: Known | None = None, from_curves: Sequence[Charge] = ()) -> Conclusion:
    """`from_curves` are the charges from losses; a crash explains the end of a job better than they do."""
    known = known or Known()
    last = _conclude(logs, known, from_curves)
    if logs.maybe_jobs:
        last = _of_two(last, logs.maybe_jobs)
    if not logs.earlier:
        return last
    return _with_earlier(last, logs, [_conclude(each, known, ()) for each in logs.earlier])


def _conclude(logs: Logs, known: Known, from_curves: Sequence[Charge]) -> Conclusion:
    case = case_of(logs, known)
    blames = decide(case)
    charges = _charges(case, blames, from_curves)
    outcome = _outcome(case, charges)
    causes = [each for each in charges if each.because is None]
    hosts = _names(each.host for charge in causes for each in charge.who)
    if not hosts:  # then any host that is known
        files = (file.who.host for file in case.logs.files)
        complain = (each.by.host for blame in blames for each in blame.events)
        hosts = tuple(sorted(_names((*files, *case.places.host_of_rank.values(), *complain))))
    return Conclusion(
        outcome,
        tuple(charges),
        story=story_of(case),
        odd=tuple(line for _, line in case.odd)[:MOST_ODD],
        open=openings(case, blames),
        hosts=hosts,
        checks=tuple(dict.fromkeys(check for charge in causes for check in charge.checks)),
        read=readout(case),
    )


def _with_earlier(last: Conclusion, logs: Logs, earlier: Sequence[Conclusion]) -> Conclusion:
    """If a job was started more than once, the last attempt is judged; how the others ended is reported.
    A last attempt without complaints is clean only if it made progress."""
    total = len(earlier) + 1
    ends = [f"attempt {number} of {total} {_ended(each)}" for number, each in enumerate(earlier, 1)]
    if total - 1 > MOST_TOLD:
        ends = [*ends[: MOST_TOLD // 2], f"{total - 1 - MOST_TOLD} more attempts", *ends[-MOST_TOLD // 2 :]]
    made = replace(last, beside=tuple(ends))
    if last.outcome is not Outcome.CLEAN or any(file.progress for file in logs.files):
        return made
    opened = f"attempt {total} of {total} began; its log shows no step, so it may have ended as well"
    return replace(made, outcome=Outcome.UNKNOWN, open=(*last.open, opened))


def _ended(attempt: Conclusion) -> str:
    causes = [each for each in attempt.charges if each.because is None]
    if not causes:
        return "ended; its log does not say why"
    if attempt.outcome is Outcome.NAMED:
        beside = f" (or {len(causes) - 1} more)" if len(causes) > 1 else ""
        return f"failed: {causes[0].says.rstrip('.')}{beside}"
    return f"ended for an unknown reason: {causes[0].says.rstrip('.')}"


def _of_two(found: Conclusion, jobs: Sequence[str]) -> Conclusion:
    """The logs may belong to two jobs: a conclusion for one job is then only a suspicion."""
    one, other = jobs[:2]
    said = f"{one} and {other} may be two jobs: explain one at a time"
    charges = tuple(
        replace(each, confidence=Confidence.SUSPECT) if each.because is None else each
        for each in found.charges
    )
    return replace(found, charges=charges, open=(said, *found.open))


def _names(hosts: Iterable[str | None]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(host for host in hosts if host and is_name(host)))


def _outcome(case: Case, charges: Sequence[Charge]) -> Outcome:
    if any(_is_cause(each) for each in charges):
        return Outcome.NAMED
    if charges or case.odd or not any(file.lines for file in case.logs.files):
        return Outcome.UNKNOWN
    if any(file.problem for file in case.logs.files) and not case.events:
        return Outcome.UNKNOWN
    return Outcome.UNKNOWN if case.logs.missed or fell_silent(case.logs.curves) else Outcome.CLEAN


def _is_cause(charge: Charge) -> bool:
    if charge.because is not None:
        return False
    return charge.role in _CAUSES or charge.role is Role.CONFIRMS or bool(charge.checks)


def _charges(case: Case, blames: Sequence[Blame], curves: Sequence[Charge]) -> list[Charge]:
    first = blames[0].role if blames else None
    if first is Role.ROOT:  # a crash explains the end
        more = _more(case, blames[0]) if len(blames) == 1 else ""
        charges = [each.charge(more=more if place == 0 else "") for place, each in enumerate(blames)]
        return [*charges, *_follow(case, blames, 0), *map(_beside, curves)]
    if any(each.role is Role.ROOT for each in curves):
        return [*curves, *_follow(case, (), 0)]
    charges = [each.charge() for each in blames]
    return [*charges, *(_follow(case, blames, 0) if first is Role.CONFIRMS else ()), *curves]


def _beside(charge: Charge) -> Charge:
    """The charge of a curve if a crash explains the end: never certain."""
    sure = Confidence.SUSPECT if charge.confidence is Confidence.CERTAIN else charge.confidence
    return replace(charge, confidence=sure)


def _more(case: Case, blame: Blame) -> str:
    """What the cause did to the other ranks, as the end of a sentence."""
    ranks = {each.rank for each in blame.who if each.rank is not None}
    if blame.role is not Role.ROOT or " lost their " in blame.says or " waited " in blame.says:
        return ""
    closed = {r for each in case.of(Kind.CLOSED) for r in each.ranks} - ranks
    waited = {r for each in case.of(Kind.WAITS) for r in each.ranks} - ranks
    return aftermath(waited, closed)


def _follow(case: Case, blames: Sequence[Blame], because: int) -> list[Charge]:
    """All other events that count, as consequences: each symptom once, in the order of time."""
    used = {id(event.sighting) for blame in blames for event in blame.events if not blame.nameless}
    groups: dict[tuple[str, Kind], list[Event]] = {}
    for event in case.events:
        if id(event.sighting) not in used and event.kind is not Kind.CONFIRMS:
            groups.setdefault((event.id, event.kind), []).append(event)
    found = []
    for events in list(groups.values())[:MOST_FOLLOW]:
        parties = tuple(
            dict.fromkeys(party for each in events for party in each.who if key(party)[0] != "file")
        )
        blame = Blame(told(parties, events[0]), parties, tuple(events), role=Role.CONSEQUENCE)
        found.append(blame.charge(because))
    return found
