"""What the next round of samples has to show, if another one is needed. Pure."""

from doctor.live.wires import Key, key
from doctor.slow.agents import RoundPlan
from doctor.slow.evidence import SlowEvidence
from doctor.slow.judge import SlowJudgement, SlowState, judge
from doctor.slow.judge.series import Sampled, sampled
from doctor.slow.options import SlowWishes
from doctor.text.grouped import grouped

FIRST = 0.6
"""The share of --for that the first round takes; stacks are recorded in the second."""
RECORDED = 4.0
"""The fewest seconds for which stacks are recorded: py-spy takes one of them to start."""
MOST = 50.0
"""Seconds after which even a job with long steps is judged: an answer comes within a minute."""
UNSURE = 3.0
"""How many times --for it takes at most to find out whether somebody is late by chance."""
OTHERS = 3
"""Ranks whose stacks are compared with those of the one that is late."""
FEW = 2
"""Late ranks whose stacks are recorded."""
WORKERS = 2
STILL = 2
"""Rounds without any move, after which it stands still, or a step takes longer."""
LOST = 3
"""Rounds that some host did not answer in time, after which it looks no further."""
MOST_RECORDED = 16
"""Ranks of a host whose stacks can be recorded at once."""


def following(evidence: SlowEvidence, wishes: SlowWishes) -> RoundPlan | None:
    """The next round; None if nothing more is needed."""
    if not any(host.rounds or host.late for host in evidence.samples):
        anybody = any(member.helps is None for host in evidence.hosts for member in host.members)
        return RoundPlan(FIRST * wishes.seconds) if anybody else None
    made = judge(evidence)
    if made.job is None:
        return None
    seen = sampled(evidence, made.job)
    if made.state is SlowState.STANDS:
        return RoundPlan(FIRST * wishes.seconds) if len(seen.rounds) < STILL else None
    if len(seen.lost) >= LOST:
        return None
    if not seen.rounds:
        return RoundPlan(FIRST * wishes.seconds)
    left = wishes.seconds - made.seconds
    if not made.by and not _recorded(seen):
        blind = any(map(seen.failed, seen.keys))
        return None if blind else _stacks_of_all(seen, max(wishes.seconds, RECORDED))
    late, others = _interesting(made, seen)
    if left > 0.1 * wishes.seconds:
        return _plan(max(left, RECORDED) if late else left, late, others, seen)
    until = (MOST if made.few else UNSURE * wishes.seconds) - made.seconds
    if made.more and until > 0:
        return _plan(min(made.seconds, until + 1), late, others, seen)
    unknown = {*late} - _recorded(seen)
    if (
        unknown
        and any(not each.is_link for each in made.late)
        and not any(seen.failed(each) for each in unknown)
    ):
        return _plan(RECORDED, late, others, seen)
    return None


def _recorded(seen: Sampled) -> set[Key]:
    return {each for each in seen.keys if seen.profiles(each)}


def _late(made: SlowJudgement) -> list[Key]:
    """Whose stacks say why: of all that are named, one each, or all if they are few; else the one that waits
    least.
    """
    found = list[Key]()
    waits = {each.key: each.waits or 0.0 for each in made.ranks}
    for late in made.late:
        if not late.is_link:
            keys = [
                each.key
                for each in made.ranks
                if each.key[0] in late.hosts and (each.rank in late.ranks or each.key[1] == late.pid)
            ]
            keys.sort(key=lambda each: waits[each])
            found += keys[: 1 if late.whole_host else FEW]
    known = sorted((each.waits, each.key) for each in made.ranks if each.waits is not None)
    return [*dict.fromkeys(found)][:FEW] or [key for _, key in known[:1]]


def _interesting(made: SlowJudgement, seen: Sampled) -> tuple[list[Key], list[Key]]:
    """Who is late, or waits least, and some others to compare; without those that may not be read."""
    late = _late(made)
    waits = {each.key: each.waits or 0.0 for each in made.ranks}
    named = {each for one in made.late for each in seen.keys if each[0] in one.hosts and one.whole_host}
    rest = sorted((each for each in seen.keys if each not in {*late} | named), key=lambda each: -waits[each])
    readable = {key(each) for each in seen.job.ranks if not each.hidden}
    if not {*late} <= readable:
        return [], []
    return late, [each for each in rest[: OTHERS + 1 - len(late)] if each in readable]


def _plan(seconds: float, late: list[Key], others: list[Key], seen: Sampled) -> RoundPlan:
    workers = [(each.host, each.pid) for each in seen.job.helpers if (each.host, each.helps) in late]
    return RoundPlan(seconds, grouped([*late, *others, *workers[:WORKERS]]), grouped(late))


def _stacks_of_all(seen: Sampled, seconds: float) -> RoundPlan | None:
    """Without threads that show when ranks wait, as with NCCL and HCCL, the stacks of all may."""
    by_host = grouped(key(each) for each in seen.job.ranks if not each.hidden)
    if any(len(pids) > MOST_RECORDED for pids in by_host.values()) or not by_host:
        return None
    return RoundPlan(seconds, by_host)
