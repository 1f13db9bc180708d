"""Ranks and hosts with a cause of their own: killed, crashed, a full disk, a broken device.

An end that follows from another does not count, such as a kill after SIGTERM.
"""

from collections.abc import Iterable, Sequence

from doctor.logs.judge.accusations import MOST_WORDS
from doctor.logs.judge.blame import LogBlame
from doctor.logs.judge.case import LogCase
from doctor.logs.judge.deaths import (
    LOGGED,
    OF_OTHERS,
    add_exceptions,
    alike,
    crash,
    deaths_of,
    known_first,
    nameless_death,
    own_errors,
    raised,
    together,
)
from doctor.logs.judge.disagreement import disagreement, disagrees
from doctor.logs.judge.event import Event, explains
from doctor.logs.judge.kernel_events import of_another_container
from doctor.logs.judge.kinds import SuspectKind, lacks_memory, signal_of
from doctor.logs.judge.parties import Key, covers, key
from doctor.logs.judge.suspect import MOST, Suspect
from doctor.logs.judge.words import MOST as MOST_RANGES
from doctor.logs.judge.words import REPORTERS, ended, titled, told, who
from doctor.logs.model import Form, LogLine, Party
from doctor.model import Confidence
from doctor.text.ranks import ranks_text

WHOLE = 1.0
"""Seconds: torchrun's tables state times in whole ones."""
NEAR = 12
"""The most lines between those of one message."""
_EXCEPTION = "exception of the program"
_FIRST = "no other rank is reported to have ended earlier"
_NO_REASON = "no line that is known to be its own says why it ended"
_RAISED = "ended with an exception of the program"
_AT_ONCE = "they ended alike, so it is hardly a fault of a single rank"
_ALIKE = "all of them say the same, so it is no fault of a single rank"


def suspects(case: LogCase) -> list[Suspect]:
    deaths = deaths_of(case)
    others = _by_symptom(case)
    add_exceptions(case, deaths, others)
    kept = []
    for death in known_first(case, deaths):
        reason = next((each for each in others if _explains_death(each, death)), None)
        if reason is None:
            kept.append(death)
        else:
            reason.events += death.events
            reason.exceptions += death.exceptions
    found = [*alike(case, together(case, kept)), *others] or nameless_death(case)
    return [each for each in found if each.exceptions or not _by_link(case, each)]


def _by_link(case: LogCase, suspect: Suspect) -> bool:
    """Whether a connection that failed explains everything that is known against the suspect."""
    links = case.of(SuspectKind.LINK)
    return all(
        any(one.id == each.id or (explains(one, each) and not case.before(each, one)) for one in links)
        for each in suspect.symptoms
    )


def _by_symptom(case: LogCase) -> list[Suspect]:
    """One suspect for each symptom, with all parties that have it."""
    found: dict[str, Suspect] = {}
    after = [each for each in case.of(SuspectKind.AFTER) if each.sighting.symptom.explains]
    for event in case.of(SuspectKind.ROOT):
        if "said" not in event.sighting.taken and any(_led_to(each, event) for each in after):
            continue
        suspect = found.setdefault(event.id, Suspect({}, []))
        suspect.events.append(event)
        suspect.who.update(dict.fromkeys(event.who))
    kept: dict[object, Suspect] = {}
    for suspect in found.values():
        lines = frozenset((each.line.file, each.line.number) for each in suspect.events)
        same = kept.setdefault((suspect.keys, lines), suspect)  # two symptoms of the very same lines
        if same is not suspect:
            same.events += suspect.events
    return list(kept.values())


def _led_to(one: Event, other: Event) -> bool:
    """Whether a process says why it ends, and right below that it ends."""
    below = other.line.number - one.line.number
    whose = other.by.rank is None or other.by.rank in one.ranks
    return one.line.file == other.line.file and 0 < below <= NEAR and whose and explains(one, other)


def _explains_death(reason: Suspect, death: Suspect) -> bool:
    if any(lacks_memory(each.sighting) for each in death.events):
        return False
    one = death.one
    ended = all(signal_of(each.sighting) == 9 and explains(reason.events[0], each) for each in death.events)
    if ended and {*reason.who} <= {Party()}:
        return True
    return any(key(each) == key(one) or (one.rank is None and covers(one, each)) for each in reason.who)


def blame_of(case: LogCase, suspect: Suspect, confidence: Confidence) -> LogBlame:
    head = suspect.head
    if head is not None and disagrees(head):
        return disagreement(case, suspect)
    many = len(suspect.who) > 1
    how = [_ALIKE] if suspect.exceptions and many else [_AT_ONCE] if many and crash(suspect) else []
    if head is None:
        says = f"{who(suspect.who)} {_RAISED}: {raised(suspect.exceptions[0])}"
        return LogBlame(says, tuple(suspect.who), (), confidence, tuple(how), tuple(suspect.exceptions),
                       nameless=True, brief=_EXCEPTION)  # fmt: skip
    says = told(tuple(suspect.who), head, suspect.events)
    errors = [*own_errors(case, [each.rank for each in suspect.who]).values()]
    if suspect.exceptions:
        every = [*filter(None, map(raised, suspect.exceptions))]
        own = [said for said in every if not OF_OTHERS.match(said)]  # the others follow from what it raised
        says = f"{who(suspect.who)} {_RAISED}: {(own or every)[-1]}"
    if suspect.beside:
        says += f"; {who(suspect.beside)} ended with it or later"
    if suspect.confirmed:
        how.append(f"{_reporters(suspect)} agree that it {ended(suspect.events[-1])}")
    elif of_another_container(head.sighting):
        how.append("it exceeded the limit of its own container, which may not be that of the job")
    elif lacks_memory(head.sighting) and len({each.line.form for each in suspect.events}) > 1:
        told_twice = f"{_reporters(suspect)} report a kill on this host"
        how.append(f"{told_twice}; their pids differ, as in a container")
    elif head.kind is SuspectKind.LEFT and not suspect.exceptions:
        before = [] if _another_ended_before(case, suspect, head) else [_FIRST]
        said = f'its last error is "{errors[-1].text.strip()[:MOST_WORDS]}"' if errors else _NO_REASON
        after = [each for each in case.of(SuspectKind.AFTER) if {*map(key, each.who)} & {*suspect.keys}]
        if after and not (errors or many or case.before(head, after[0])):
            says += f"; it said: {titled(after)}"
            suspect.events, said = [*suspect.events, *after], "its own lines say no more"
        if not errors and not many and (errors := _errors_of_file(case, head)):
            said = f'the last error in that file is "{errors[-1].text.strip()[:MOST_WORDS]}"'
        how.append(", and ".join([*before, said]))
    silent = [each for each in suspect.keys if each[0] == "rank" and each[1] not in case.left_alone]
    others = case.left_alone - {each[1] for each in silent}
    if silent and others:
        complain = f"{ranks_text(others, most=MOST_RANGES)} complain{'' if len(others) > 1 else 's'}"
        does = "these do" if len(silent) > 1 else "this one does"
        how.append(f"{complain} of a lost connection or of waiting; {does} not")
    return LogBlame(
        says, tuple(suspect.who), tuple(suspect.events), confidence, tuple(how),
        tuple(suspect.exceptions or (errors if head.kind is SuspectKind.LEFT else ())),
        nameless=head.kind is SuspectKind.LEFT and bool(suspect.exceptions), brief=_EXCEPTION,
    )  # fmt: skip


def _errors_of_file(case: LogCase, head: Event) -> list[LogLine]:
    """The errors above the line that reports an end, unless they are of ranks that waited or lost others."""
    said = (line for who, line in case.odd if who.rank not in case.left_alone and line.form in LOGGED)
    here = [each for each in said if each.file == head.line.file and each.number < head.line.number]
    return [each for each in here if each.level in ("ERROR", "FATAL")]


def _reporters(suspect: Suspect) -> str:
    """Who reports the end: "the kernel and torchrun"."""
    forms = dict.fromkeys(each.line.form for each in suspect.events)
    names = [REPORTERS[form] for form in forms if form in REPORTERS]
    return f"{', '.join(names[:-1])} and {names[-1]}" if len(names) > 1 else "two programs"


def _another_ended_before(case: LogCase, suspect: Suspect, head: Event) -> bool:
    if any(_failed_after(case, suspect, rank) for rank in case.first_failures):
        return True
    ends = case.of(SuspectKind.DIED, SuspectKind.LEFT)
    return any(case.before(each, head) for each in ends if not each.keys & suspect.keys)


def ordered(case: LogCase, found: Iterable[Suspect], accused: frozenset[Key]) -> tuple[list[Suspect], bool]:
    """The suspects with the likeliest first, and whether only that one can be the cause."""
    several = list(found)
    events = {id(each): each.symptoms for each in several}
    causes = [each for each in several if any(event.sighting.symptom.explains for event in events[id(each)])]

    def is_caused(other: Suspect) -> bool:
        return any(
            _caused(case, by, other, events[id(by)], events[id(other)]) for by in causes if by is not other
        )

    kept = [
        each for each in several if not is_caused(each)
    ] or several  # they may explain each other in a ring
    kinds = list({each.id: each for each in case.events}.values())

    def rank(each: Suspect) -> tuple[bool, int, int]:
        tier = 0 if each.confirmed or each.keys & accused else 1 if each.hard else 2
        reach = sum(any(explains(event, other) for event in events[id(each)]) for other in kinds)
        return (each.overcome, tier, -reach)

    ranks = {id(each): rank(each) for each in kept}
    kept.sort(key=lambda each: ranks[id(each)])
    for place in range(1, len(kept)):
        best = kept[0]
        if ranks[id(kept[place])][:2] == ranks[id(best)][:2] and _earlier(case, kept[place], best):
            kept.insert(0, kept.pop(place))
    best = kept[0]
    sure = all(each.overcome or each.keys <= best.keys or _earlier(case, best, each) for each in kept[1:])
    return kept, sure


def _earlier(case: LogCase, one: Suspect, other: Suspect) -> bool:
    tables = _table(case, one), _table(case, other)
    if tables[0] and tables[1]:  # each was printed when its host had ended, in any order
        apart = case.clocks.apart(tables[0], tables[1])
        return apart is not None and apart > WHOLE
    return all(any(case.clocks.before(a, b) for a in _lines(one)) for b in _lines(other))


def _table(case: LogCase, of: Suspect) -> LogLine | None:
    """The line of torchrun's table that names the suspect, with the time of its end."""
    return next((case.first_failures[p.rank] for p in of.who if p.rank in case.first_failures), None)


def _failed_after(case: LogCase, suspect: Suspect, rank: int) -> bool:
    """Whether, by torchrun's tables, the suspect failed later than the rank, by the clocks of two hosts."""
    own, other = _table(case, suspect), case.first_failures[rank]
    return own is not None and own.at is not None and other.at is not None and own.at - other.at > WHOLE


def _lines(of: Suspect) -> list[LogLine]:
    return ([each.line for each in of.events] or of.exceptions)[:MOST]


def _caused(
    case: LogCase, by: Suspect, other: Suspect, causes: Sequence[Event], effects: Sequence[Event]
) -> bool:
    """Whether `by` explains `other` but not the reverse. `causes`, `effects`: one event of each symptom."""
    if not any(explains(one, two) for one in causes for two in effects):
        return False
    if by.overcome and not other.overcome:
        return False
    own = [each for each in causes if each.kind is SuspectKind.ROOT] or causes  # not how it ended
    back = any(explains(two, one) for one in own for two in effects)
    told_late = all(each.line.form is Form.SLURM for each in by.events)  # Slurm reports what it learns
    one_message = any(_of_one_message(one, two) for one in causes for two in effects)
    return not back and (told_late or one_message or not _earlier(case, other, by))


def _of_one_message(one: Event, other: Event) -> bool:
    """Whether one rank wrote them at the same time: the lines of one message have no order, and need not all
    say whose they are. MPI lists the failed calls from the outermost inwards.
    """
    whose = {*one.keys, *other.keys} - {("file", one.line.file)}
    return (
        one.line.file == other.line.file
        and (len(whose) < 2 or one.keys == other.keys or one.line.form is other.line.form is Form.MPI)
        and abs(one.line.number - other.line.number) <= NEAR
    )
