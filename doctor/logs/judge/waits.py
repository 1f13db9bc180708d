"""Ranks that timed out: blames those that did not wait, then the latest one, then the link."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator

from doctor.logs.judge.accusations import MOST_WORDS
from doctor.logs.judge.blame import LogBlame
from doctor.logs.judge.case import LogCase
from doctor.logs.judge.deaths import own_errors, raised
from doctor.logs.judge.event import Event, explains, filled
from doctor.logs.judge.kinds import SuspectKind
from doctor.logs.judge.links import edges_of
from doctor.logs.judge.parties import MOST_RANKS, Key, key
from doctor.logs.judge.words import MOST, who
from doctor.logs.model import LogLine, Party
from doctor.logs.reading.stacks import waits_in
from doctor.model import UNDECIDED, Confidence
from doctor.text.grouped import grouped
from doctor.text.hostprogram import table
from doctor.text.ranks import ranks_text
from doctor.waits import cycles, waited_for

FAR = 1000
"""The operations in which ranks of one group wait are less far apart: none ends before all have joined it."""
_SEQUENCE, _COUNTS, _SIZE, _GROUP, _OPERATION = (re.compile(row) for _, row in table(__file__, "waits.txt"))


def _one(case: LogCase, rank: int) -> Party:
    return case.places.settled(Party(rank=rank), None)


def without(case: LogCase, events: tuple[Event, ...]) -> LogBlame | None:
    """Blame the ranks whose log was read and has no time-out."""
    everybody = case.silent()
    if not case.waiting or not everybody or len(case.missing) > 2 * len(case.waiting):
        return None  # of too few is known what they did
    killed = {
        rank for each in case.of(SuspectKind.DIED) for rank in each.ranks if ("rank", rank) in case.stopped
    }
    unresponsive = tuple(rank for rank in everybody if rank in killed)  # stopped, or hanging in the kernel
    silent = unresponsive or everybody
    parties = tuple(_one(case, rank) for rank in silent)
    waiters = tuple(_one(case, rank) for rank in sorted(case.waiting))
    plural = len(silent) > 1
    how = [f"{who(waiters)} waited in vain, and {'these have' if plural else 'it has'} no such line"]
    if unresponsive:
        how.append("their launcher had to kill them" if plural else "its launcher had to kill it")
    says = f"{who(parties)} did not join what {who(waiters)} waited for{UNDECIDED if plural else ''}"
    all_told = case.waiting >= {*range(case.world or 0)} - {*silent} or ("rank", silent[0]) in case.stopped
    sure = Confidence.STRONG if all_told and len(everybody) == 1 else Confidence.SUSPECT
    said = (line for file in case.logs.files for line in file.odd)
    threads = [each for each in said if each.who.rank is None and each.text.endswith(", in a thread)")]
    how += [f"a thread of a rank without a name ended with an exception: {raised(line)}" for line in threads]
    lines, more = (*threads, *_last_lines(case, silent)), ("stuck-process",) if unresponsive else ()
    return LogBlame(says, parties, events, sure, tuple(how), lines, nameless=True, checks=more,
                 brief="did not join")  # fmt: skip


def _last_lines(case: LogCase, ranks: tuple[int, ...]) -> tuple[LogLine, ...]:
    found = [case.last_steps[rank][1] for rank in ranks if rank in case.last_steps]
    quiet = {*ranks} - case.last_steps.keys()
    return (*found, *(each.last for each in case.logs.files if each.last and each.who.rank in quiet))


def _numbers(reports: Iterable[Event]) -> Iterator[tuple[str, dict[int, int]]]:
    """By what the ranks of a group are compared, and their numbers. Hosts run ahead of their devices by
    different amounts: what is enqueued counts up to the first operation that no rank has completed.
    """
    waited: dict[int, int] = {}
    groups: dict[str, dict[int, tuple[int, int]]] = {}
    for event in reports:
        if found := _SEQUENCE.search(event.line.text):
            waited.update((rank, max(waited.get(rank, -1), int(found[1]))) for rank in event.ranks)
        if (found := _COUNTS.search(event.line.text)) and (done := int(found[3])) <= (last := int(found[2])):
            told = groups.setdefault(found[1], {})  # torch 2.3 prints numbers that it never set
            told.update((rank, max(told.get(rank, (-1, -1)), (last, done))) for rank in event.ranks)
    for told in groups.values() if waited else ():
        most = max((done for _, done in told.values()), default=-1)
        yield "enqueued", {rank: min(last, most + 1) for rank, (last, _) in told.items() if last >= most}
    if len(groups) < 2 or all(waited.keys() <= each.keys() for each in groups.values()):
        yield "waited in", waited
    for told in groups.values() if waited else ():
        yield "completed", {rank: done for rank, (_, done) in told.items()}


def behind(case: LogCase, events: tuple[Event, ...]) -> LogBlame | None:
    """Blame the ranks with the smallest number of an operation: enqueued, waited in, or completed."""
    reports = (*events, *case.of(SuspectKind.NAMES, SuspectKind.CONFIRMS, SuspectKind.AFTER))
    for what, at in _numbers(reports):
        if len({*at.values()}) < 2:
            continue
        least, most = min(at.values()), max(at.values())
        if what == "waited in" and (case.silent() or most - least > FAR):
            continue  # a rank without such a line comes first; two groups count on their own
        ranks = tuple(sorted(rank for rank, number in at.items() if number == least))
        if len(ranks) * 2 > len(at) and len(at) > 2:
            continue
        if what == "enqueued" and not case.waiting.isdisjoint(ranks):
            continue  # it waits itself, in another group
        two = len(at) == 2 and (what == "waited in" or len(case.covered) > 2)
        parties = tuple(_one(case, rank) for rank in (tuple(sorted(at)) if two else ranks))
        says = (
            f"{who([_one(case, r) for r in ranks])} {'were' if len(ranks) > 1 else 'was'} behind: operation "
            f"{least} was the last that {'they' if len(ranks) > 1 else 'it'} {what}, of {most}"
        )
        how = (f"the numbers of {ranks_text(at, most=MOST)} were compared",)
        sure = Confidence.SUSPECT if two or case.missing else Confidence.STRONG
        return LogBlame(says + (UNDECIDED if two else ""), parties, tuple(reports), sure, how, nameless=True,
                     brief="fell behind")  # fmt: skip
    return None


def other_operation(case: LogCase, events: tuple[Event, ...]) -> LogBlame | None:
    """All ranks waited, but in different operations: one was skipped, added or reordered. The minority is
    blamed, and all sides are described, since the logs do not show which is wrong.
    """
    at: dict[Key, tuple[Party, str]] = {}
    groups = set[str | None]()
    for event in events:
        found = _OPERATION.search(event.line.text)
        if name := (found[1] or found[2]) if found else waits_in(event.line.frames):
            at.update((key(party, event.line.file), (party, name)) for party in event.who)
            groups.add(found["group"] if found else None)
    sizes = {each.keys: size.groups() for each in events if (size := _SIZE.search(each.line.text))}
    pair = {*at} == {("rank", 0), ("rank", 1)} and case.world in (None, 2)  # others may be of two groups
    of = _groups(case)
    alone = pair or (len({each for told in of.values() for each in told}) == 1 and len(at) == len(of))
    same = {sequence for sequence, _ in sizes.values()}
    if alone and len(sizes) == len(at) and len({*sizes.values()}) > len(same) == 1:
        for one, (_, n) in ((one, size) for keys, size in sizes.items() for one in keys & at.keys()):
            at[one] = (at[one][0], f"{at[one][1]} (NumelIn={n})")
    counts = Counter(name for _, name in at.values())
    apart = len(of) > 1 and not set.intersection(*map(set, of.values()))  # each may be in one of its own
    if len(counts) < 2 or len(groups) > 1 + (None in groups) or apart:
        return None
    names = [name for name, _ in counts.most_common()]
    sides = [f"{who(p for p, n in at.values() if n == name)} in {name}" for name in names]
    most = names[0] if counts[names[0]] * 2 > len(at) else None
    named = tuple(party for party, name in at.values() if name != most)
    says = f"the ranks waited in different operations: {', '.join(sides)}"
    says = f"{says}; {who(named)} stood apart" if most else says + UNDECIDED
    places = ((each.sighting.taken.get("which"), party) for each in events for party in each.who)
    calls = [f"{who(of)} called it at {place}" for place, of in grouped(places).items() if place]
    how = ("their lines or tracebacks name different operations", *calls[:MOST])
    return LogBlame(says, named, events, Confidence.SUSPECT, how, nameless=True, brief="other operation")


def _groups(case: LogCase) -> dict[int, list[str]]:
    """The groups of torch in which each of the waiting ranks waited, as far as their lines say."""
    found = ((each, group[1]) for each in case.events if (group := _GROUP.search(each.line.text)))
    return grouped((rank, group) for each, group in found for rank in each.ranks & case.waiting)


def chain(case: LogCase, events: tuple[Event, ...]) -> LogBlame | None:
    """If A waits for B and B waits for C, blame C. A rank that nobody waits for is not guilty."""
    found = edges_of(each for each in events if each.line.form.value in ("plog", "cann", "mindspore"))
    edges = [pair for pair in found if pair[1][0] in ("rank", "device")]
    real = range(case.world or MOST_RANKS)  # a row may name a rank that the job does not have
    edges = [pair for pair in edges if pair[1][0] == "device" or pair[1][1] in real] or edges
    if not edges:
        return None
    waits = grouped(edges)
    ends, cycle = waited_for(waits)
    ends.sort(key=str)
    parties = {key(each, event.line.file): each for event in events for each in (*event.who, *event.peers)}
    if not cycle:  # those that the most ranks wait for
        number = Counter(other for _, other in edges)
        ends = [end for end in ends if number[end] == max(number[each] for each in ends)]
    chosen = tuple(parties[end] for end in ends)
    said = [(parties[one], parties[other]) for one, other in edges]
    steps = ", ".join(f"{who((one,))} for {who((other,))}" for one, other in said[:MOST])
    how = (f"their lines say who waited in vain: {steps}",)
    carried = tuple(found.values())
    title = carried[0].sighting.symptom.title
    if len(chosen) == 1 and chosen[0].rank in case.covered:
        says = f"{who(chosen)} is the last that others wait for: {title}"
        return LogBlame(
            says, chosen, carried, Confidence.STRONG, (*how, "no such line of its own is in these logs")
        )
    if len(edges) == 1:
        chosen = (said[0][1], said[0][0])
        says = f"{who(chosen[1:])} waited in vain for {who(chosen[:1])}"
    elif cycle:
        circles = [[parties[end] for end in sorted(each, key=str)] for each in cycles(waits)]
        says = f"{', and '.join(map(who, circles))} waited for each other"
    else:
        says = f"{who(chosen)} {'are' if len(chosen) > 1 else 'is'} the last that others wait for"
    doubt = UNDECIDED if len(chosen) > 1 else ""
    return LogBlame(f"{says}: {title}{doubt}", chosen, carried, Confidence.SUSPECT, how)


def first_cause(events: tuple[Event, ...]) -> Event:
    """The first event that none of the others explains."""
    heads = list({each.id: each for each in reversed(events)}.values())
    free = [one for one in heads if not any(explains(other, one) for other in heads if other is not one)]
    return next((each for each in events if each in free), events[0])


def _finished(case: LogCase, silent: Iterable[int]) -> list[LogLine]:
    """Where each of these says, after its last step, that it is over, if no rank that went on says so."""
    said = [(filled(line.who, file.who).rank, line) for file in case.logs.files for line in file.over]
    over = {rank: line for rank, line in said if rank is not None}
    ends = [(over[rank], case.last_steps.get(rank, (0, over[rank]))[1]) for rank in silent if rank in over]
    own = [end for end, step in ends if end.file == step.file and end.number >= step.number]
    return [] if case.left_alone & over.keys() else own


def silent_while_closed(case: LogCase) -> LogBlame | None:
    """Blame silent ranks if others lost connections: a rank that is killed writes nothing. Silent ranks that
    the launcher had to end are not blamed: they were alive.
    """
    events = case.of(SuspectKind.CLOSED)
    silent = tuple(rank for rank in case.silent() if ("rank", rank) not in case.stopped)
    if not events or not 0 < len(silent) <= len(case.left_alone):
        return None
    errors = own_errors(case, silent)
    silent = tuple(errors) or silent
    last = [*errors.values()] or _finished(case, silent)
    parties = tuple(_one(case, rank) for rank in silent)
    others = tuple(_one(case, rank) for rank in sorted(case.left_alone))
    one = len(silent) == 1
    lost = "lost their connection" if len(others) > 1 else "lost its connection"
    if len(last) == len(silent):
        does = f'logged "{last[0].text.strip()[:MOST_WORDS]}" and ended' if errors else "had finished"
        how = () if errors else ("the others had more to do, such as more batches, or it should have waited",)
        return LogBlame(f"{who(parties)} {does}; {who(others)} {lost}", parties, events, Confidence.SUSPECT,
                     how, tuple(last), nameless=True, brief="ended first")  # fmt: skip
    says = f"{who(parties)} ended without a word; {who(others)} {lost}"
    sure = Confidence.STRONG if one and not case.missing and case.world else Confidence.SUSPECT
    how = ("a rank that is killed writes nothing; those that it leaves alone complain",)
    stop = "" if one else UNDECIDED
    return LogBlame(says + stop, parties, events, sure, how, _last_lines(case, silent), nameless=True,
                 checks=("kernel-log", "memory-low"), brief="ended without a word")  # fmt: skip
