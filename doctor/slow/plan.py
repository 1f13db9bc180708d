"""What the next round of samples has to show, if another one is needed. Pure."""

from __future__ import annotations

from collections.abc import Collection

from doctor.hang.judge.wires import Key, key
from doctor.slow.agents import RoundPlan
from doctor.slow.evidence import SlowEvidence
from doctor.slow.judge import SlowJudgement, SlowState, judge, lowest
from doctor.slow.judge.judgement import Lag
from doctor.slow.judge.series import Sampled, sampled
from doctor.slow.options import SlowWishes

FIRST = 0.6
"""The share of --for that the first round takes; stacks are recorded in the second."""
RECORDED = 4.0
"""The fewest seconds for which stacks are recorded: py-spy takes one of them to start."""
MOST = 600.0
"""Seconds after which even a job with long steps is judged."""
UNSURE = 3.0
"""How many times --for it takes at most to find out whether somebody is late by chance."""
OTHERS = 3
"""Ranks whose stacks are compared with those of the one that is late."""
WORKERS = 2
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
    if made.state is SlowState.STANDS:  # or a step takes longer than this look did
        return RoundPlan(made.seconds) if made.seconds < UNSURE * wishes.seconds else None
    seen = sampled(evidence, made.job)
    if len(seen.lost) >= LOST:
        return None
    if not seen.rounds:
        return RoundPlan(FIRST * wishes.seconds)
    left = wishes.seconds - made.seconds
    if not made.by and not _recorded(seen):
        return _stacks_of_all(seen, max(wishes.seconds, RECORDED))
    asked = _interesting(made, seen)
    if left > 0.1 * wishes.seconds:
        return _plan(max(left, RECORDED) if asked else left, asked, seen)
    if made.more and made.seconds < (MOST if made.few else UNSURE * wishes.seconds):
        return _plan(min(made.seconds, MOST - made.seconds + 1), asked, seen)
    unknown = made.late and made.late[0].lag not in (Lag.SLOW_LINK, Lag.LOSSY_LINK)
    if unknown and asked and not {*asked[:1]} <= _recorded(seen) and not _failed(seen, asked[0]):
        return _plan(RECORDED, asked, seen)
    return None


def _recorded(seen: Sampled) -> set[Key]:
    return {each for each in seen.keys if seen.profiles(each)}


def _failed(seen: Sampled, of: Key) -> bool:
    """Whether its stacks were asked for in vain."""
    return any(p.pid == of[1] and p.problem for n in seen.rounds for p in seen.round(of[0], n).profiles)


def _interesting(made: SlowJudgement, seen: Sampled) -> list[Key]:
    """Who is late, or waits least, and some others to compare; without those that may not be read."""
    named = {pid for late in made.late for pid in [late.pid] if pid is not None}
    hosts = {host for late in made.late for host in late.hosts}
    ranks = {number for late in made.late for number in late.ranks}
    late = [
        key(each)
        for each in seen.job.ranks
        if each.host in hosts and (each.pid in named or each.rank in ranks)
    ]
    first = late[:1] or [*lowest(made)]
    waits = {each.key: each.waits or 0.0 for each in made.ranks}
    rest = sorted((each for each in seen.keys if each not in late + first), key=lambda each: -waits[each])
    readable = {key(each) for each in seen.job.ranks if not each.hidden}
    return [each for each in (*first, *rest[:OTHERS]) if each in readable] if {*first} <= readable else []


def _plan(seconds: float, asked: list[Key], seen: Sampled) -> RoundPlan:
    workers = [(each.host, each.pid) for each in seen.job.helpers if (each.host, each.helps) in asked[:1]][
        :WORKERS
    ]
    return RoundPlan(seconds, _by_host([*asked, *workers]), _by_host(asked[:1]))


def _stacks_of_all(seen: Sampled, seconds: float) -> RoundPlan | None:
    """Without threads that show when ranks wait, as with NCCL and HCCL, the stacks of all may."""
    by_host = _by_host([key(each) for each in seen.job.ranks if not each.hidden])
    if any(len(pids) > MOST_RECORDED for pids in by_host.values()) or not by_host:
        return None
    return RoundPlan(seconds, by_host)


def _by_host(keys: Collection[Key]) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    for host, pid in keys:
        found.setdefault(host, []).append(pid)
    return found
