"""Whom the others wait for: the rules in their order. A rule that does not surely apply returns None."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from doctor.hang.judge.case import SETS, HangCase, groups_of
from doctor.hang.judge.judgement import (
    Activity,
    Cause,
    HangConfidence,
    HangCulprit,
    HangFinding,
    RankStanding,
    WaitGroup,
)
from doctor.hang.judge.leaving import leaves
from doctor.hang.judge.meeting import absent, never_meet
from doctor.hang.judge.position import STORE
from doctor.hang.judge.waiting import kernel_function
from doctor.live import threads
from doctor.live.collectives import RPC
from doctor.live.evidence import JobMember
from doctor.live.jobs.job import LostHost
from doctor.live.places import frames_of, short
from doctor.live.wires import Key, key
from doctor.text.durations import duration
from doctor.text.hostprogram import table
from doctor.text.ranks import ranks_text
from doctor.waits import common_end, waited_for

_NO_COLLECTIVES = {name: (said, do) for name, said, do in table(__file__, "decide.txt")}
"""What is wrong if all ranks wait in such an operation, and what to do."""
_STAGES = "_wait_batch_p2p"
"""In which the stages of a pipeline wait for one another, each at a line of its own."""
_EXIT = "make the thread a daemon, or end it; end the child; limit the time of what runs at exit"


def decide(case: HangCase, limit: float, unreached: bool) -> HangFinding:
    if case.strange:
        return _strange(case)
    found = (
        _lost_host(case)
        or _lost(case)
        or never_meet(case)
        or _gone(case, limit)
        or _cut(case)
        or _outside(case, limit)
        or (_cannot_go_on(case, case.lost, HangConfidence.STRONG) if case.lost else None)
        or absent(case)
        or _mismatch(case)
        or _by_connections(case)
        or _nobody(case, limit)
    )
    found = replace(found, notes=(*found.notes, *_unproved_claims(case, found)))
    elsewhere = {*case.job.missing} - {rank for rank, _ in case.job.gone}
    if not elsewhere or found.meets or found.confidence is HangConfidence.CERTAIN:
        return found
    why = "a host did not answer" if unreached else "no host that was asked has them"
    note = f"{ranks_text(elsewhere, most=4)} could not be looked at ({why}) and may be the cause"
    return replace(found, accuses=False, confidence=HangConfidence.UNDECIDED, notes=(*found.notes, note))


def _strange(case: HangCase) -> HangFinding:
    """The finding if no rank may be read. A rank that has ended, is stopped or stuck is a suspect at most."""
    at = {each.key: each for each in case.standings}
    few = 0 < len(case.lost) < len(case.upright)
    named = tuple(_culprit_lost(of, cause, at.get(key(of))) for of, cause in case.lost) if few else ()
    owner = next((rank.user for rank in case.job.ranks if rank.user != "root"), "")
    may = f"{owner} and root" if owner else "root"
    if named:
        said = f"Only {may} may look into this job: that one process differs proves nothing."
        return HangFinding(named, HangConfidence.SUSPECT, accuses=False, sentence=said)
    said = f"Only {may} may look into this job: from outside nothing tells who keeps it waiting."
    return HangFinding(sentence=said)


def _lost(case: HangCase) -> HangFinding | None:
    """Ranks that have ended, are stopped or are stuck in the kernel while others wait. More than their own
    variables must show that they are ranks: one that was stopped before it connected comes later.
    """
    proved = tuple((of, cause) for of, cause in case.lost if _belongs(case, of, cause))
    return _cannot_go_on(case, proved, HangConfidence.CERTAIN) if proved else None


def _cannot_go_on(
    case: HangCase, lost: Sequence[tuple[JobMember, Cause]], sure: HangConfidence
) -> HangFinding:
    at = {each.key: each for each in case.standings}
    named = tuple(_culprit_lost(of, cause, at.get(key(of))) for of, cause in lost)
    others = case.upright
    if not others:
        do = tuple(_resumed(case)) or ("read the log of the job, then start it again",)
        return HangFinding(sentence=_all_lost({cause for _, cause in case.lost}), do=do)
    if case.inside or (case.timed and all(each.inside is None for each in others)):
        outside = case.told(case.outside if case.inside else ())
        return HangFinding(named, sure, at_once=True, standings=outside, notes=_outside_as_well(outside))
    return HangFinding(named, accuses=False, sentence="No other rank was seen to wait for it.")


def _all_lost(causes: set[Cause]) -> str:
    if causes <= {Cause.STOPPED, Cause.FROZEN}:
        return "Every rank is stopped or frozen: the job is suspended, and goes on when it is resumed."
    what = "ended" if causes == {Cause.ENDED} else "ended or stopped"
    return f"Every rank has {what}: the job is over, and its log says why."


def _resumed(case: HangCase) -> Iterator[str]:
    """How each host's stopped ranks go on."""
    for host in case.job.hosts:
        pids = [str(of.pid) for of, cause in case.lost if of.host == host and cause is Cause.STOPPED]
        if pids:
            yield f"if nobody suspended it on purpose, on {host}: kill -CONT {' '.join(pids)}"


def _belongs(case: HangCase, of: JobMember, cause: Cause) -> bool:
    """Whether more than its variables shows that it is a rank. A process that has ended has no connections,
    so its variables suffice.
    """
    return cause is Cause.ENDED or key(of) in case.job.bound


def _unproved_claims(case: HangCase, found: HangFinding) -> Iterator[str]:
    named = {(each.host, each.pid) for each in found.named}
    for of, cause in case.lost:
        if found.named and not _belongs(case, of, cause) and (of.host, of.pid) not in named:
            who = _name(of.rank, key(of))
            yield f"process {of.pid} is {cause.value}: nothing but its variables shows that it is {who}"


def _culprit_lost(of: JobMember, cause: Cause, at: RankStanding | None) -> HangCulprit:
    by = of.b.tracer if of.b and cause is Cause.TRACED else ""
    held = f"{by}, which traces it" if by else "a debugger"
    function = kernel_function(of)
    words = {
        Cause.ENDED: "has ended, and its launcher has not noticed",
        Cause.STOPPED: "is stopped (state T)",
        Cause.TRACED: f"is held by {held} (state t)",
        Cause.FROZEN: "is frozen, as in a container that is paused",
        Cause.KERNEL: f"is stuck in the kernel (state D{', ' if function else ''}{function})",
    }[cause]
    words += f" in {short(at.function)}, {at.place}" if at and at.place else ""
    found = at.named(cause, words) if at else HangCulprit(of.rank, of.host, of.pid, cause, words)
    return replace(found, do=f"leave or end {by}, which traces {{who}}" if by else "")


def _gone(case: HangCase, limit: float) -> HangFinding | None:
    """Ranks without a process on a host that answered. A job younger than the limit is not judged by this."""
    if not case.job.gone or not case.inside or case.job.age < limit:
        return None
    named = tuple(
        HangCulprit(rank, host, None, Cause.GONE, "is gone: no process of it is left")
        for rank, host in case.job.gone
    )
    return HangFinding(named, HangConfidence.STRONG, at_once=True)


def _lost_host(case: HangCase) -> HangFinding | None:
    """Ranks whose host answers and has no socket for the connections that others have to them: these are half
    open, and the kernel there would refuse whatever is sent.
    """
    lost = case.job.lost
    if not lost or not case.inside:
        return None
    named = tuple(
        HangCulprit(rank, each.host, None, Cause.GONE, _lost_words(each))
        for each in lost
        for rank in each.ranks or (None,)
    )
    unsure = next((each for each in lost if each.unsure), None)
    outside = case.told(case.outside)
    if unsure is None:
        notes = _outside_as_well(outside)
        return HangFinding(named, HangConfidence.CERTAIN, True, standings=outside, notes=notes)
    said = f"Connections to {unsure.host} are half open; a rank may be there all the same: {unsure.unsure}."
    return HangFinding(named, HangConfidence.SUSPECT, accuses=False, sentence=said, standings=outside)


def _lost_words(lost: LostHost) -> str:
    of = f" of {ranks_text(lost.waiting, most=4)}" if lost.waiting else ""
    words = f"was there and is gone: the connections{of} to {lost.address} are half open, and {lost.host} "
    words += "answers and has no such socket"
    if lost.started is not None:
        words += f"; {lost.host} was started again {duration(lost.started)} ago"
    return words + (f"; {lost.happened}" if lost.happened else "")


def _cut(case: HangCase) -> HangFinding | None:
    cut = sorted({(min(wire.of, wire.to), max(wire.of, wire.to)) for wire in case.lossy})
    if not cut:
        return None
    members = {key(member): member for member in case.job.ranks}
    places = {each.key: each.place for each in case.standings}
    down = [end for end in sorted({end for pair in cut for end in pair}) if _without_link(case, end)]
    shared = common_end(cut)
    ends = down or ([shared] if shared is not None else sorted({end for pair in cut for end in pair}))
    named = []
    for end in ends:
        peers = sorted({other for pair in cut if end in pair for other in pair if other != end})
        to = ", ".join(_name(members[peer].rank, peer) for peer in peers[:4])
        to += f" and {len(peers) - 4} more" if len(peers) > 4 else ""
        words = f"has lost its connection to {to}: what is sent is never acknowledged"
        if len(cut) == 1:
            words = _direction(case, members)
        if link := _without_link(case, end):
            words = f"has lost its connection to {to}: {link} of {end[0]} has no link"
        of = members[end]
        named.append(HangCulprit(of.rank, of.host, of.pid, Cause.LINK, words, places.get(end, "")))
    both = f"Ranks {named[0].rank} and {named[1].rank}" if len(named) == 2 else "Ranks"
    said = f"{both} have lost their connection." if len(named) > 1 else ""
    return HangFinding(tuple(named), HangConfidence.STRONG, sentence=said)


def _direction(case: HangCase, members: Mapping[Key, JobMember]) -> str:
    """Of one lost connection: who sends in vain, for how long, and whether that arrives."""
    senders = sorted({wire.of for wire in case.lossy})
    ends = sorted({end for wire in case.lossy for end in (wire.of, wire.to)})
    between = " and ".join(_name(members[end].rank, end) for end in ends)
    words = f"lost the connection between {between}: "
    if len(senders) != 1:
        return words + "each sends, and gets no acknowledgement"
    wire = max(case.lossy, key=lambda each: each.here.last_acknowledged)
    since = (wire.here.last_acknowledged or wire.here.last_received) / 1000
    words += f"{wire.of[0]} has sent for {duration(since)}"
    if wire.there.received > wire.here.acknowledged > 0:
        return f"{words}; this arrives at {wire.to[0]}, whose acknowledgements are lost"
    return f"{words}, and {wire.to[0]} acknowledges nothing"


def _without_link(case: HangCase, end: Key) -> str:
    """The interface of this end of a lost connection, if it has no link."""
    used = {wire.here.local for wire in case.lossy if wire.of == end}
    used |= {wire.there.local for wire in case.lossy if wire.to == end}
    addresses = {each.rpartition(":")[0].strip("[]") for each in used}
    named = (each.partition(" ") for each in case.unplugged.get(end[0], ()))
    return next((name for name, _, address in named if address in addresses), "")


def _name(rank: int | None, of: Key) -> str:
    return f"rank {rank} on {of[0]}" if rank is not None else f"process {of[1]} on {of[0]}"


def _outside(case: HangCase, limit: float) -> HangFinding | None:
    """The finding if some ranks are outside, and others inside a collective, or the training is over."""
    outside = case.outside
    over = case.job.gone and {leaves(frames_of(each.member.b)) for each in outside} == {True}
    if not case.inside and not over:
        return None
    if not outside and len(case.unseen) == 1:  # it may wait for a store or its data loader
        polls = threads.polls(threads.main(case.unseen[0].member.b))
        outside = case.unseen if polls and not case.unseen[0].frames else ()
    if not outside:
        return None
    told = case.told(outside)
    idle = [each for each in told if each.doing and not each.doing.works and not _may_wait_for(each, told)]
    apart = [each for each in idle if _is_not_missed(case, each, limit)]
    if len(apart) == len(told):
        return _not_missed(apart)
    idle = [each for each in idle if each not in apart]
    proved = [each for each in idle if each.doing and not each.doing.unproved]
    chosen = proved or idle or [each for each in told if each.doing and each.doing.works]
    rest = [each for each in told if each not in chosen]
    return HangFinding(
        named=tuple(_culprit(each) for each in chosen),
        confidence=_confidence(case, chosen),
        works=not idle,
        unproved=bool(idle) and not proved,
        standings=told,
        notes=(*_outside_as_well(rest), *_perhaps_outside(case, chosen)),
        do=() if case.inside else (_EXIT,),
    )


def _is_not_missed(case: HangCase, each: RankStanding, limit: float) -> bool:
    """Whether the others went on without it for longer than the limit, as without one that only evaluates."""
    since = case.exchanged.get(each.key)
    return since is not None and since - min(case.exchanged.values()) > limit


def _not_missed(apart: Sequence[RankStanding]) -> HangFinding:
    named = tuple(_culprit(each) for each in apart)
    who = ranks_text([each.rank for each in apart if each.rank is not None], most=4) or "them"
    said = f"The others went on for long without {who}: nothing shows that they wait for it."
    return HangFinding(named, accuses=False, sentence=said, standings=tuple(apart))


def _may_wait_for(each: RankStanding, others: Sequence[RankStanding]) -> bool:
    """Whether it waits for a lock on a file, or polls, while another rank outside holds, or may hold or make,
    that.
    """
    held = each.doing.held if each.doing else None
    if held is not None and held.holder is not None:
        return any(one is not each and one.key == (each.member.host, held.holder) for one in others)
    others = [one for one in others if one is not each]
    works = any(do.works or (do.unproved and not do.polls) for one in others if (do := one.doing))
    return works and each.doing is not None and each.doing.polls


def _outside_as_well(standings: Sequence[RankStanding]) -> tuple[str, ...]:
    return tuple(
        f"{_name(each.rank, each.key)} is outside as well: it {each.doing.words}"
        for each in standings
        if each.doing
    )[:4]


def _perhaps_outside(case: HangCase, chosen: Sequence[RankStanding]) -> tuple[str, ...]:
    """A note about ranks that wait for something that no stack shows."""
    named = {each.key for each in chosen}
    ranks = [
        each.rank
        for each in case.unseen
        if each.key not in named and not each.frames and each.rank is not None
    ]
    wait = "it waits" if len(ranks) == 1 else "they wait"
    said = f"{ranks_text(ranks, most=4)} may be outside as well: no stack shows what {wait} for"
    return (said,) if ranks else ()


def _culprit(each: RankStanding) -> HangCulprit:
    does = each.doing or Activity(Cause.ELSEWHERE, "is outside every collective")
    where = f" in {short(each.function)}, {each.place}" if each.place else ""
    return replace(
        each.named(does.cause, does.words + ("" if does.place else where)),
        place=does.place or each.place,
        frames=does.frames or each.frames,
        held=does.held,
        by=does.pid,
        do=does.do,
    )


def _confidence(case: HangCase, chosen: Sequence[RankStanding]) -> HangConfidence:
    if any(each.by != "stack" for each in chosen) or not any(each.by == "stack" for each in case.inside):
        return HangConfidence.SUSPECT
    sure = (
        case.job.bound.issuperset(each.key for each in chosen)
        and (len(case.inside) + len(case.outside) == len(case.upright) and not case.job.missing)
        and len(chosen) == len(case.outside)
        and all(e.doing and e.doing.certain for e in chosen)
    )
    return HangConfidence.CERTAIN if sure else HangConfidence.STRONG


def _mismatch(case: HangCase) -> HangFinding | None:
    """The finding if all ranks are inside, but at different places. Either side may be wrong: name both."""
    if not case.inside or len(case.inside) < len(case.upright):
        return None
    if all(not each.operation for each in case.inside):
        return None
    if any(each.operation.startswith(RPC) for each in case.inside):
        said = "The ranks wait for remote calls, and no thread shows which of them is at work."
        return HangFinding(sentence=said)
    operations = {each.operation for each in case.inside}
    if len(operations) == 1 and (alone := _NO_COLLECTIVES.get(min(operations))):
        return HangFinding(sentence=alone[0], do=(f"{alone[1]}: {_lines(case)}",))
    groups = groups_of(case.inside)
    if len(groups) == 1 and len({each.step for each in case.inside if each.step is not None}) < 2:
        return _below(case)
    said = "The ranks wait in different collectives: one was skipped, added or reordered."
    odd, fewer = _odd_ones(case)
    chosen = case.inside if len(case.inside) == 2 else odd
    named = tuple(_at_another(each, groups) for each in chosen) or _waited_for(case, groups)
    lines = f"compare the order of collectives at these lines: {_lines(case)}" if odd or not named else ""
    do = tuple(filter(None, (fewer or lines,)))
    if STORE in operations:
        said = "Some ranks wait for a key of the store, and none is left to set it."
        do = (SETS.format(place=next(each.place for each in case.inside if each.operation == STORE)),)
    if operations <= {"send", "recv"}:
        said = "The ranks wait in sends and receives that do not meet, by order, rank, tag or size."
        do = (f"compare the rank (dst, src), the tag and the size at these lines: {_lines(case)}",)
    return HangFinding(named, accuses=False, sentence=said, do=do)


def _lines(case: HangCase) -> str:
    return ", ".join(sorted({each.place for each in case.inside if each.place})[:4])


def _at_another(each: RankStanding, groups: Sequence[WaitGroup]) -> HangCulprit:
    """`groups`: the two places where the ranks wait, if they are two."""
    words = f"waits in {each.operation or 'a collective'}" + (f", {each.place}" if each.place else "")
    other = next((g for g in groups if (g.operation, g.place) != (each.operation, each.place)), None)
    if other and sum(group.number for group in groups) > 2:
        words += f"; all others wait in {other.operation or 'a collective'}"
        words += f", {other.place}" if len(groups) == 2 else ""
    return each.named(Cause.MISMATCH, words)


def _waited_for(case: HangCase, groups: Sequence[WaitGroup]) -> tuple[HangCulprit, ...]:
    """Who is waited for, by the connections, and those that wait for it, who may be wrong as well."""
    ends, cycle = waited_for(case.waits)
    few, keys = groups[-1], {*ends}
    if not cycle and len(groups) > 1 and few.number < groups[-2].number:
        keys |= {e.key for e in case.inside if (e.operation, e.place) == (few.operation, few.place)}
    if len(keys) == 1:
        keys |= {of for of, to in case.edges if to in keys}
    named = tuple(_at_another(each, ()) for each in case.inside if each.key in keys)
    return named if 1 < len(named) < len(case.inside) else ()


def _odd_ones(case: HangCase) -> tuple[Sequence[RankStanding], str]:
    """If all wait at two places, the fewer of them, else those that are further; and what to find out."""
    messages = all(each.operation in ("send", "recv") for each in case.inside)
    at = {e.key: (e.operation, "" if e.operation == _STAGES else e.place) for e in case.inside}
    places = [place for place, _ in Counter(at.values()).most_common()]
    if len(places) != 2 or messages or any(each.noticed for each in case.inside):
        return (), ""
    most, odd = ([each for each in case.inside if at[each.key] == place] for place in places)
    ahead = _ahead(most, odd)
    few, more = (most, odd) if ahead > 0 else (odd, most)
    who, others = (ranks_text([n for e in of if (n := e.rank) is not None], most=4) for of in (few, more))
    came = f"find out why {who} came past {more[0].place} with one collective fewer than {others}"
    said = f"{came}: a condition, an exception, a batch less, another order" if ahead else ""
    return odd if len(odd) < len(most) else few if ahead else (), said


def _ahead(some: Sequence[RankStanding], others: Sequence[RankStanding]) -> int:
    """Positive if all of `some` are further in the program, and so made a collective fewer; negative if all
    others are; 0 if unknown.
    """
    order = {_further(one, other) for one in some for other in others}
    return order.pop() if len(order) == 1 else 0


def _further(one: RankStanding, other: RankStanding) -> int:
    """1 if it is further in the program, by its step or its line in the same step; -1 if the other is."""
    here, there = one.step, other.step
    if here == there is not None:
        stacks = zip(reversed(frames_of(one.member.b)), reversed(frames_of(other.member.b)), strict=False)
        of, to = next(
            ((of, to) for of, to in stacks if (of.name, of.line) != (to.name, to.line)), (None, None)
        )
        here, there = (of.line, to.line) if of and to and of.name == to.name else (0, 0)
    return 0 if here is None or there is None else (here > there) - (here < there)


def _below(case: HangCase) -> HangFinding:
    """The finding if all ranks are inside the same operation and no TCP connection is lost."""
    if case.job.missing or case.away:
        said = "Every rank that was found waits in the same operation."
        return HangFinding(sentence=said, notes=tuple(_away(case)))
    what = "the network or the library" if len(case.job.hosts) > 1 else "the library"
    if any(threads.uses_device(each.member.b) or each.noticed for each in case.inside):
        what = "the devices or the network between them"
    said = f"Every rank waits in the same operation: the fault is below Python, in {what}"
    return HangFinding(sentence=f"{said}, unless their arguments differ.", below=True)


def _away(case: HangCase) -> Iterator[str]:
    for host, number in Counter(host for host, _ in case.away).items():
        ranks = f"{number} ranks are" if number > 1 else "a rank is"
        yield f"{host}: {ranks} connected to a local process that was not recognised, and that may be a rank"


def _by_connections(case: HangCase) -> HangFinding | None:
    """The finding if only the connections show who is waited for. It is never more than a suspicion."""
    ends, cycle = waited_for(case.waits)
    if not ends or len(ends) == len(case.upright):
        return None
    words = "waits for a rank that waits for it" if cycle else "is the last that others wait for"
    inside = len(case.inside) == len(case.upright)
    if inside and len(ends) == 1:  # as with a mismatch: those that wait for it may be wrong as well
        ends = [*ends, *(of for of, to in case.edges if to in ends)]
        words = "waits for another rank, or is waited for"
    told = {each.key: each for each in case.told(case.outside)}
    alike = {(each.doing and each.doing.cause, each.place) for each in told.values()}
    if len(alike) == 1 and len(told) == len(case.upright):
        return None  # all wait alike, as for their own data loaders
    of = [each for each in case.upright if each.key in ends]
    named = tuple(_culprit(told[e.key]) if e.key in told else e.named(Cause.LAST, words) for e in of)
    if not named:
        return None
    works = all(e.key in told and (do := told[e.key].doing) and do.works for e in of)
    sure = HangConfidence.UNDECIDED if cycle or inside or len(named) > 1 else HangConfidence.SUSPECT
    said = "Only the connections show who waits for whom."
    return HangFinding(named, sure, works=works, accuses=False, sentence=said, standings=(*told.values(),))


def _nobody(case: HangCase, limit: float) -> HangFinding:
    told = case.told(case.outside)
    left = all((of := e.member.b) and not (of.connections or threads.uses_gloo(of)) for e in told)
    if case.job.gone and told and left:
        works = all(each.doing and each.doing.works for each in told)
        said = "The other ranks have ended, and what is left has no connection: the training is over."
        return HangFinding(works=works, accuses=False, sentence=said, standings=told)
    if not case.inside and case.outside:
        starting = ": it may still be starting" if case.job.age < limit else ""
        does = {do.held or do.words: do.words for each in told if (do := each.doing)}
        causes = {do.cause.value for each in told if (do := each.doing)}
        what = min(does.values() if len(does) == 1 else causes, default="")
        alike = f": each {what}" if len(causes) == 1 and len(told) == len(case.upright) else ""
        said = f"No rank was seen in a collective{starting or alike}."
        rest = [each for each in told if not _may_wait_for(each, told)]
        works = len(rest) < len(told) and all(each.doing and each.doing.works for each in rest)
        awake = tuple(_culprit(each) for each in rest if each.doing and each.doing.cause is not Cause.SLEEPS)
        named = awake if works or 2 * len(awake) < len(told) else ()  # most sleep, as if they polled
        return HangFinding(named, works=works, accuses=False, sentence=said, standings=told)
    return HangFinding(sentence="What was seen does not show who waits for whom.", standings=told)
