"""The rules in their order. The first rule that applies names the cause."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from doctor.logs.judge.accusations import absent, accused, nobody_came
from doctor.logs.judge.blame import LogBlame
from doctor.logs.judge.case import LogCase
from doctor.logs.judge.deaths import raised
from doctor.logs.judge.event import Event, explains
from doctor.logs.judge.exceptions import ECHOES, own_exception
from doctor.logs.judge.interruptions import interrupted
from doctor.logs.judge.kernel_events import of_another_container
from doctor.logs.judge.kinds import SuspectKind
from doctor.logs.judge.links import link
from doctor.logs.judge.own_causes import blame_of, ordered, suspects
from doctor.logs.judge.parties import key
from doctor.logs.judge.suspect import Suspect
from doctor.logs.judge.waits import behind, chain, first_cause, other_operation, silent_while_closed, without
from doctor.logs.judge.words import titled, told, waited, who
from doctor.logs.model import Party, Role
from doctor.model import Confidence

MOST = 5
"""The most causes that are named together."""
_TELLING = tuple(
    map(SuspectKind, ["closed", "link", "waits", "after", "stopped", "left", "died", "confirms", "names"])
)
"""Kinds of consequences, the most telling first."""


@dataclass(frozen=True, slots=True)
class Rule:
    """A row of the judge. It is asked if none above it has answered; the first of its blames is the cause."""

    id: str
    blames: Callable[[LogCase], list[LogBlame]]
    says: str
    cases: tuple[str, ...]
    """What it is for: foreign cases of tests/exam, recorded logs of tests/samples, or a test that names whom
    it finds. tests/unit/logs/judge/test_rules.py switches the row off, and their answers must change.
    """


def decide(case: LogCase) -> list[LogBlame]:
    """The cause first; several if the logs do not show which of them it is."""
    return next((found for rule in RULES if (found := rule.blames(case))), [])


def _accused(case: LogCase) -> list[LogBlame]:
    named = accused(case)
    roots = _roots(case, named) if named else []
    if named is None or _stronger(case, roots, named):
        return []
    named = _with_reason(case, named)
    return [named, *(replace(each, confidence=Confidence.SUSPECT) for each in roots if each.who)]


def _one(rule: Callable[[LogCase], LogBlame | None]) -> Callable[[LogCase], list[LogBlame]]:
    return lambda case: [found] if (found := rule(case)) else []


def _of_waits(
    rule: Callable[[LogCase, tuple[Event, ...]], LogBlame | None],
) -> Callable[[LogCase], list[LogBlame]]:
    return _one(lambda case: rule(case, waits) if (waits := case.of(SuspectKind.WAITS)) else None)


def _with_reason(case: LogCase, named: LogBlame) -> LogBlame:
    """The accusation; an exception of the program comes first if it is the last word of who is accused."""
    own = own_exception(case)
    if own is None or not own.keys & named.keys:
        return named
    return replace(own, events=named.events, confidence=named.confidence)


def _roots(case: LogCase, named: LogBlame | None) -> list[LogBlame]:
    found = suspects(case)
    if not found:
        return []
    several, sure = ordered(case, found, named.keys if named else frozenset())
    kept = [each for each in several if not each.overcome][:MOST]
    blames = [blame_of(case, each, _confidence(case, each, place, sure)) for place, each in enumerate(kept)]
    if named and blames and named.keys & blames[0].keys:
        blames[0] = replace(
            blames[0], how=(*blames[0].how, *named.how), events=(*blames[0].events, *named.events)
        )
    return blames


def _confidence(case: LogCase, suspect: Suspect, place: int, sure: bool) -> Confidence:
    if place or not sure:
        return Confidence.SUSPECT
    if suspect.confirmed:
        return Confidence.CERTAIN
    head = suspect.head
    if head is not None and head.kind is SuspectKind.LEFT and not suspect.exceptions:
        own = {each.rank for each in suspect.who} & case.logged
        alone = len(suspect.who) == 1 and (bool(own) or not case.left_alone)
        return Confidence.STRONG if alone else Confidence.SUSPECT
    if head is not None and of_another_container(head.sighting):
        return Confidence.SUSPECT
    named = {key(each)[0] for each in suspect.who}
    if (
        head is not None
        and named
        and named <= {"host", "pid"}
        and head.line.form.value == "kernel"
        and case.left_alone
    ):
        # only the kernel names it: the host is known, the rank is not
        on_host = {rank for rank, host in case.places.host_of_rank.items() if host == suspect.one.host}
        return Confidence.STRONG if on_host - case.left_alone else Confidence.SUSPECT
    return Confidence.STRONG


def _stronger(case: LogCase, roots: Sequence[LogBlame], named: LogBlame) -> bool:
    """Whether a cause beats an accusation: it is the cause of the accused rank, or it came first."""
    if not roots:
        return False
    best = roots[0]
    if best.keys & named.keys:
        return True
    died = any(each.kind is SuspectKind.DIED for each in best.events)
    if died and best.confidence is not Confidence.SUSPECT:
        head = best.events[0]  # Slurm tells of a kill at the end of the step
        return not any(case.before(one, head) and not explains(head, one) for one in named.events)
    return any(explains(one, it) or case.before(one, it) for one in best.events for it in named.events)


def _absent_or_linked(case: LogCase) -> LogBlame | None:
    """A rank that never came may have tried to: then the link is at fault, and its guilty end is unknown."""
    missing = absent(case)
    if missing is None:
        return None
    heads = (party for each in missing.events for party in each.who if key(party)[0] != "file")
    way = link(case, tuple(dict.fromkeys(heads)), alone=nobody_came(missing))
    if way is None:
        return missing
    return replace(way, events=(*way.events, *missing.events), how=(*way.how, missing.says))


def _scheduler(case: LogCase) -> LogBlame | None:
    found = case.of(SuspectKind.SCHEDULER)
    if not found:
        return None
    events = tuple(sorted(found, key=lambda each: not explains(each, found[0])))
    head = events[0]
    how = []
    steps = {rank: step for rank, (step, _) in case.last_steps.items()}
    if len({*steps.values()}) == 1:
        how.append(f"the last step of every rank that says its step is {max(steps.values())}")
    elif steps:
        least = min(steps.values())
        behind = [case.places.settled(Party(rank=rank), None) for rank in steps if steps[rank] == least]
        how.append(f"the last step is {max(steps.values())}; {who(behind)} logged none after {least}")
    role = Role.ROOT if head.sighting.symptom.role is Role.ROOT else Role.CONFIRMS
    by = "cloud" if head.id.startswith("cloud-") else "scheduler"
    says = f"the {by} ended the job: {titled([each for each in events if each.id == head.id])}"
    lines = tuple(line for _, line in case.last_steps.values())[:2]
    here, end = head.line.file, head.line.number
    made = (step for file in case.logs.files if file.name == here for step in file.progress)
    on = max((step.since for step in made), default=0)
    said = (line for _, line in case.odd if raised(line) and line.file == here and line.number < end)
    before = [line for line in said if line.frames or on <= line.number]  # only a traceback may end a rank
    if before:  # the other ranks may have waited until the scheduler ended them
        says = f"an exception of the program came first: {raised(before[-1])}; then {says}"
        return LogBlame(says, (), events, Confidence.SUSPECT, tuple(how), (before[-1], *lines), role)
    return LogBlame(says, (), events, Confidence.STRONG, tuple(how), lines, role)


def _only_consequences(case: LogCase) -> LogBlame | None:
    """The first consequence, if the logs do not show its cause."""
    found = [each for each in case.events if each.kind is not SuspectKind.NAMES or not each.overcome]
    several = (tuple(each for each in found if each.kind is kind) for kind in _TELLING)
    events = next(filter(None, several), None)
    if events is None:
        return None
    head = first_cause(events)
    echo = head.kind is SuspectKind.CONFIRMS or head.id in ECHOES
    own = own_exception(case) if echo else None
    said = own.lines[0] if own else head.line
    above = said.file == head.line.file and said.number < head.line.number
    if own and (above or head.kind is SuspectKind.CONFIRMS):  # who tells of an end does not say why
        return own
    told_why = (each for each in case.of(SuspectKind.CONFIRMS, SuspectKind.AFTER) if explains(each, head))
    head = next(told_why, head)
    same = tuple(each for each in case.events if each.id == head.id)
    parties = list(dict.fromkeys(party for each in same for party in each.who))
    peers = list(dict.fromkeys(peer for each in same for peer in each.peers))
    named = tuple(parties) if any(name.startswith("guilty_") for name in head.sighting.taken) else ()
    waits = head.kind in (SuspectKind.WAITS, SuspectKind.CLOSED) and not named
    says = (waited if waits else told)(parties, head, same)
    if peers and head.kind is SuspectKind.CLOSED and who(peers) not in says:
        says += f" (the other end is {who(peers)})"
    return LogBlame(says, named, same, Confidence.SUSPECT, role=Role.CONSEQUENCE)


RULES = (
    Rule("accused", _accused, "whom the others name", ("72",)),
    Rule("cause", lambda case: _roots(case, accused(case)), "whose own cause is known", ("06", "21", "48")),
    Rule(
        "ctrl-c",
        _one(lambda case: None if case.of(SuspectKind.SCHEDULER) else interrupted(case)),
        "somebody ended the job",
        ("jobs/loopback/ctrlc/train.log",),
    ),
    Rule("absent", _one(_absent_or_linked), "who never came", ("74", "76")),
    Rule("link", _one(link), "the ends of broken links", ("15", "35", "401", "427")),
    Rule("behind", _of_waits(behind), "who fell behind", ("judge/test_waits.py::test_smallest_is_behind",)),
    Rule("chain", _of_waits(chain), "the last that others wait for", ("12",)),
    Rule(
        "silent", _of_waits(without), "not joined", ("torch_c10d/2.13_gloo_allreduce_timeout_torchrun.log",)
    ),
    Rule("operation", _of_waits(other_operation), "two operations", ("judge/test_waits.py::test_mismatch",)),
    Rule("wordless", _one(silent_while_closed), "who ended without a word", ("runs/lightning-sigkill.log",)),
    Rule("scheduler", _one(_scheduler), "the scheduler ended the job", ("exam/111-openvla-cancelled.log",)),
    Rule("consequence", _one(_only_consequences), "consequences without their cause", ("946",)),
    Rule("exception", _one(own_exception), "how it ended", ("exam2/056-dataset-download-broken.log",)),
)
"""In the order in which they are asked."""
