"""Concludes from logs who is to blame. Pure: the same logs in any order give the same conclusion.

A rank is accused only if the logs suffice for that; if they do not, the conclusion says so.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace

from doctor.logs.judge.blame import LogBlame
from doctor.logs.judge.case import LogCase, case_of
from doctor.logs.judge.clocks import TOGETHER
from doctor.logs.judge.decide import decide
from doctor.logs.judge.event import Event, explains
from doctor.logs.judge.job_facts import JobFacts, JobHost, known_of
from doctor.logs.judge.kinds import SuspectKind
from doctor.logs.judge.lag import fell_silent
from doctor.logs.judge.line_ranking import ranked
from doctor.logs.judge.parties import bare, is_name, key
from doctor.logs.judge.recovery import survived
from doctor.logs.judge.story import story_of
from doctor.logs.judge.summary import readout, ways_of
from doctor.logs.judge.unknowns import openings
from doctor.logs.judge.words import aftermath, titled, told
from doctor.logs.loss.judge import NAN
from doctor.logs.model import CUT, Conclusion, Form, LogCause, LogOutcome, Logs, Role
from doctor.model import Confidence

__all__ = ["JobFacts", "JobHost", "conclude", "known_of"]

MOST_TOLD = 10
"""Earlier attempts that are reported; if there are more, the first and the last ones."""
MOST_ODD = 10
MOST_FOLLOW = 12
"""Consequences that are reported."""
_OVER = "the log says later that the training is over; so may its script, if its program ended here"
_ON = "the log goes on after it; others may have written that, if it was the program that ended here"
_OF_LOSS = re.compile(r"(?i)\b(?:nan|inf|(?:not |non-?)finite|diverged?)\b")
_CAUSES = {Role.ROOT, Role.NAMES, Role.CONFIRMS}
_TOLD = (" lost their ", " lost its ", " waited ")
"""With these words a sentence already says what happened to the others."""


def conclude(logs: Logs, known: JobFacts | None = None, from_curves: Sequence[LogCause] = ()) -> Conclusion:
    """`from_curves` are the charges from losses; a crash explains the end of a job better than they do."""
    known = known or JobFacts()
    last = _conclude(logs, known, from_curves)
    if logs.maybe_jobs:
        last = _of_two(last, logs.maybe_jobs)
    if not logs.earlier:
        return last
    return _with_earlier(last, logs, [_conclude(each, known, ()) for each in logs.earlier])


def _conclude(logs: Logs, known: JobFacts, from_curves: Sequence[LogCause]) -> Conclusion:
    case = case_of(logs, known)
    blames = decide(case)
    charges = _charges(case, blames, from_curves)
    outcome = _outcome(case, charges)
    causes = [each for each in charges if each.because is None]
    hosts = _names(each.host for charge in causes for each in charge.who)
    if hosts:  # and the addresses of ends without a name, where a check of the cause connects to them
        tried = (charge for charge in causes if "port-unreachable" in charge.checks)
        nameless = (each.address or "" for charge in tried for each in charge.who if not each.host)
        hosts += tuple(dict.fromkeys(filter(None, (bare(address)[0] for address in nameless))))
    else:  # then any host that is known
        files = (file.who.host for file in case.logs.files)
        complain = (each.by.host for blame in blames for each in blame.events)
        hosts = tuple(sorted(_names((*files, *case.places.host_of_rank.values(), *complain))))
    told = outcome is LogOutcome.UNKNOWN and bool(charges)  # more than by a traceback without its end
    odd = [each for each in ranked(case) if not (told and (each.score < 0 or CUT in each.line.text))]
    return Conclusion(
        outcome,
        tuple(charges),
        story=story_of(case),
        odd=tuple(replace(each.line, who=each.who) for each in odd[:MOST_ODD]),
        telling="; ".join(odd[0].why) if odd else "",
        open=openings(case, blames),
        hosts=hosts,
        checks=tuple(dict.fromkeys(check for charge in causes for check in charge.checks)),
        read=readout(case),
        survived=outcome is LogOutcome.CLEAN and bool(survived(case.events)),
        ways=ways_of(case),
    )


def _with_earlier(last: Conclusion, logs: Logs, earlier: Sequence[Conclusion]) -> Conclusion:
    """If a job was started more than once, the last attempt is judged; how the others ended is reported.
    A last attempt without complaints is clean only if it made progress."""
    total = len(earlier) + 1
    ends = [f"attempt {number} of {total} {_ended(each)}" for number, each in enumerate(earlier, 1)]
    if len(ends) > MOST_TOLD:
        ends[MOST_TOLD // 2 : -MOST_TOLD // 2] = [f"{len(ends) - MOST_TOLD} more attempts"]
    made = replace(last, beside=tuple(ends))
    if last.outcome is not LogOutcome.CLEAN or any(file.progress for file in logs.files):
        return made
    opened = f"attempt {total} of {total} began; its log shows no step, so it may have ended as well"
    return replace(made, outcome=LogOutcome.UNKNOWN, open=(*last.open, opened))


def _ended(attempt: Conclusion) -> str:
    causes = [each for each in attempt.charges if each.because is None]
    if not causes:
        return "ended; its log does not say why"
    beside = f" (or {len(causes) - 1} more)" if len(causes) > 1 else ""
    how = "failed" if attempt.outcome is LogOutcome.NAMED else "ended for an unknown reason"
    return f"{how}: {causes[0].says.rstrip('.')}{beside}"


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


def _outcome(case: LogCase, charges: Sequence[LogCause]) -> LogOutcome:
    if any(each.because is None and (each.role in _CAUSES or each.checks) for each in charges):
        return LogOutcome.NAMED
    files = case.logs.files
    if charges or case.odd or case.logs.missed or fell_silent(case.logs.curves):
        return LogOutcome.UNKNOWN
    unread = not any(file.lines for file in files) or (
        any(each.problem for each in files) and not case.events
    )
    return LogOutcome.UNKNOWN if unread else LogOutcome.CLEAN


def _charges(case: LogCase, blames: Sequence[LogBlame], curves: Sequence[LogCause]) -> list[LogCause]:
    first = blames[0].role if blames else None
    if first is Role.ROOT and not _gave_up(blames, curves):  # a crash explains the end
        more = _more(case, blames[0]) if len(blames) == 1 else ""
        charges = [each.charge(more=more if place == 0 else "") for place, each in enumerate(blames)]
        return [*charges, *_follow(case, blames, 0), *map(_beside, curves)]
    if any(each.role is Role.ROOT for each in curves):
        return [*curves, *_follow(case, (), 0)]
    charges = [each.charge() for each in blames]
    found = [*charges, *(_follow(case, blames, 0) if first is Role.CONFIRMS else ()), *curves]
    return found or _doubted(case)


def _doubted(case: LogCase) -> list[LogCause]:
    """What complained before the log goes on or says that the training is over: it accuses nobody."""
    events = case.doubted
    if not events:
        return []
    says = told(tuple(dict.fromkeys(party for each in events[:1] for party in each.who)), events[0], events)
    why = _ON if any(each.kind is SuspectKind.DIED for each in events) else _OVER
    blame = LogBlame(says, (), tuple(events), Confidence.SUSPECT, (why,), role=Role.CONSEQUENCE)
    return [replace(blame.charge(), checks=())]


def _gave_up(blames: Sequence[LogBlame], curves: Sequence[LogCause]) -> bool:
    """Whether all that is known of the end are exit codes, and the program may have ended for its loss."""
    exits = all(each.kind is SuspectKind.LEFT for blame in blames for each in blame.events)
    spoke = any(each.nameless and not (each.who[1:] and _OF_LOSS.search(each.says)) for each in blames)
    return exits and not spoke and any(each.symptom == NAN for each in curves)


def _beside(charge: LogCause) -> LogCause:
    """The charge from a loss curve beside a crash that explains the end: it is never certain."""
    sure = Confidence.SUSPECT if charge.confidence is Confidence.CERTAIN else charge.confidence
    return replace(charge, confidence=sure)


def _more(case: LogCase, blame: LogBlame) -> str:
    """What the cause did to the other ranks, as the end of a sentence."""
    ranks = {each.rank for each in blame.who if each.rank is not None}
    if not ranks and (then := _then(case, blame)):
        return f"; then {then}"
    if any(each in blame.says for each in _TOLD):
        return ""
    closed = {r for each in case.of(SuspectKind.CLOSED) for r in each.ranks} - ranks
    return aftermath({r for each in case.of(SuspectKind.WAITS) for r in each.ranks} - ranks, closed)


def _then(case: LogCase, blame: LogBlame) -> str:
    """The device that failed because of another one."""
    head = blame.events[0] if blame.events else None
    if head is None or head.line.form is not Form.KERNEL:
        return ""
    own = {"", *map(_pci, blame.events)}
    found = (each for each in case.of(SuspectKind.ROOT) if _pci(each) not in own)
    devices = [each for each in found if len(own) > 1 and explains(head, each)]
    return titled(devices) if devices else ""


def _pci(event: Event) -> str:
    """The address of its device without the function, as the tools of vendors spell it."""
    return event.sighting.taken.get("pci", "").lower().removesuffix(".0")


def _follow(case: LogCase, blames: Sequence[LogBlame], because: int) -> list[LogCause]:
    """All other events that count, as consequences: each symptom once, in order of time."""
    used = {id(event.sighting) for blame in blames for event in blame.events if not blame.nameless}
    groups: dict[tuple[str, SuspectKind], list[Event]] = {}
    blamed = {event.id for blame in blames for event in blame.events}
    heads = [event for blame in blames for event in blame.events]
    for event in case.events:
        if not event.who and event.id in blamed:
            continue  # another line of the same message
        if heads and all(_long_before(case, event, each) for each in heads):
            continue
        if id(event.sighting) not in used and event.kind is not SuspectKind.CONFIRMS:
            groups.setdefault((event.id, event.kind), []).append(event)
    found = []
    for events in list(groups.values())[:MOST_FOLLOW]:
        parties = tuple(
            dict.fromkeys(party for each in events for party in each.who if key(party)[0] != "file")
        )
        blame = LogBlame(told(parties, events[0], events[1:]), parties, tuple(events), role=Role.CONSEQUENCE)
        found.append(blame.charge(because))
    return found


def _long_before(case: LogCase, event: Event, cause: Event) -> bool:
    """Whether an event is surely older than the cause, which does not explain it. Without times, the lines of
    a file are in order if each is a cause of its own.
    """
    apart = case.clocks.apart(event.line, cause.line)
    if apart is None and event.kind is cause.kind is SuspectKind.ROOT and event.line.file == cause.line.file:
        return event.line.number < cause.line.number and not explains(cause, event)
    return apart is not None and apart > TOGETHER and not explains(cause, event)
