"""Ranks that others name (in an exception, a barrier or a desync report), and ranks that never came."""

import re
from collections import defaultdict

from doctor.logs.judge.blame import LogBlame
from doctor.logs.judge.case import LogCase
from doctor.logs.judge.deaths import raised
from doctor.logs.judge.event import Event, explains
from doctor.logs.judge.kinds import SuspectKind
from doctor.logs.judge.parties import MOST_RANKS, Key, key, numbers
from doctor.logs.judge.words import MOST, told, who
from doctor.logs.model import Form, LogLine, Party
from doctor.model import UNDECIDED, Confidence
from doctor.text.ranks import ranks_text

MOST_WORDS = 160
"""The most characters of a line that a sentence quotes."""
_LIST = re.compile(r"connected rankinfo\[LINE \d+\]:((?:\s*,?\s*\[[0-9A-Fa-f]{1,16}\])+)")
_AGENTS = re.compile(r"Failed to connect agent\[([\d, ]+)\]")
_JOINED = re.compile(r"(\d{1,7})/(\d{1,7}) clients joined")
MISSED = {"mindspore-node-timed-out", "msrun-nodes-timed-out"}
"""Symptoms of a scheduler that misses workers: if they end together, it names any of them."""


def accused(case: LogCase) -> LogBlame | None:
    """The party that most others name; all of them if several are named equally often."""
    by: dict[Key, list[tuple[Party, Event]]] = defaultdict(list)
    for event in case.of(SuspectKind.NAMES):
        ends = case.of(SuspectKind.NAMES, SuspectKind.SCHEDULER)
        gave_up = (each for each in ends if not each.ranks & event.ranks and explains(each, event))
        if event.overcome or any(e.by.rank in event.ranks or not case.before(event, e) for e in gave_up):
            continue
        for party in event.who:
            waits = (each for each in case.of(SuspectKind.WAITS) if party.rank in each.ranks)
            if not any(explains(each, event) for each in waits):  # it ended itself
                by[key(party, event.line.file)].append((party, event))
    if not by:
        return None
    accusers = {each: {key(event.by, event.line.file) for _, event in pairs} for each, pairs in by.items()}
    most = max(len(each) for each in accusers.values())
    chosen = [each for each in by if len(accusers[each]) == most]
    together = len({event.id for each in chosen for _, event in by[each]}) == 1
    one_line = any(len(event.who) == len(chosen) for _, event in by[chosen[0]])
    one_line = one_line or _one_list([event for each in chosen for _, event in by[each]])
    parties = tuple(dict.fromkeys(by[each][0][0] for each in chosen))
    events: list[Event] = []
    for each in chosen:
        events += [event for _, event in by[each] if event not in events]
    writers = tuple(dict.fromkeys(event.by for event in events if key(event.by)[0] != "file"))
    others = tuple(each for each in writers if each not in parties)
    how = [f"{who(others)} {'say' if len(others) > 1 else 'says'} so, by name"] if others else []
    decided = len(chosen) == 1 or (together and one_line)
    complain = [each.rank for each in parties if each.rank in case.left_alone]
    if decided and all(event.id in MISSED for event in events) and _all_fell_silent(case):
        why = "if one worker ends, the launcher ends the others, and its output says which was the first"
        says = f"all workers stopped without a word; the scheduler missed {who(parties)} first"
        return LogBlame(says, (), tuple(events), Confidence.SUSPECT, (why,))
    last = _last_words(case, events[0])
    if last:
        how.append(f'before it the log says "{last.text.strip()[:MOST_WORDS]}"')
    says = told(parties, events[0], events[1:]) + ("" if decided else UNDECIDED)
    sure = Confidence.STRONG if decided else Confidence.SUSPECT
    if decided and most > 1 and not complain and not case.missing:
        sure = Confidence.CERTAIN
    return LogBlame(says, parties, tuple(events), sure, tuple(how), (last,) if last else ())


def _all_fell_silent(case: LogCase) -> bool:
    """Whether the logs of several ranks were read, and none of them complains."""
    loud = {party.rank for party, line in case.odd if raised(line)} | {*case.left_alone}
    return len(case.logged) > 1 and not loud and case.logged <= {*case.silent()}


def _one_list(events: list[Event]) -> bool:
    """Whether the lines of one writer follow each other: then they are a list of all that are guilty."""
    places = {(each.line.file, each.line.number) for each in events}
    numbers = [number for _, number in places]
    return len({file for file, _ in places}) == 1 and max(numbers) - min(numbers) < len(numbers)


def _last_words(case: LogCase, event: Event) -> LogLine | None:
    """The last complaint above a launcher's line that names a rank which ended; it may tell why."""
    if event.line.form is not Form.MPI:
        return None
    file, number = event.line.file, event.line.number
    above = [line for _, line in case.odd if line.file == file and line.number < number]
    return max(above, key=lambda line: line.number, default=None)


def absent(case: LogCase) -> LogBlame | None:
    """The blame for ranks that never came to the rendezvous: those that are missing from the head's list."""
    events = case.of(SuspectKind.ABSENT)
    if not events:
        return None
    text = "\n".join(line.text for each in events for line in (each.sighting.first, each.sighting.last))
    joined = _JOINED.search(text)
    came, expected = (int(each) for each in joined.groups()) if joined else (0, case.world or 0)
    lacking, how = _lacking(case, text, expected, expected - came if joined else None)
    if lacking:
        parties = tuple(case.places.settled(Party(rank=each), None) for each in sorted(lacking))
        never = f"{who(parties)} never came to the rendezvous"
        how = how.format(ranks_text(lacking, most=MOST))
        return LogBlame(never, parties, events, Confidence.STRONG, (how,))
    if not joined:
        return LogBlame(events[0].sighting.symptom.title, (), events, Confidence.STRONG)
    what = "ranks" if {rank for each in events for rank in each.ranks} else "hosts or ranks"
    never = f"{expected - came} of {expected} {what} never came to the rendezvous"
    return LogBlame(never, (), events, Confidence.STRONG)


def nobody_came(missing: LogBlame) -> bool:
    """Whether only the head itself was at the rendezvous."""
    counts = [_JOINED.search(each.line.text) for each in missing.events]
    return all(each is not None and int(each[1]) == 1 for each in counts)


def _lacking(case: LogCase, text: str, expected: int, absent: int | None) -> tuple[set[int], str]:
    """The ranks that did not come, and how that is known; `absent` is their number, if a line states it."""
    if agents := _AGENTS.search(text):
        return {*numbers(agents[1])}, "the line names {}"
    ranks = range(min(expected, MOST_RANKS))
    listed = {int(each) for line in _LIST.findall(text) for each in re.findall(r"\[(\d{1,16})\]", line)}
    if listed:
        ranks = ranks or range(min(max(listed), MOST_RANKS))
        return {*ranks} - listed, "the list of those that came lacks {}"
    without = {*ranks} - case.logged
    if len(without) == absent and case.world == expected:
        return without, "that many did not come, and of {} no log was read"
    return set(), ""
