"""Whom the others wait for, as the report names it: ranks, hosts, pauses and links, what costs most first."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from statistics import mean

from doctor.live.wires import Key, key
from doctor.slow.judge.devices import devices_of, slow_devices
from doctor.slow.judge.judgement import Lag, LateReason, SlowCulprit
from doctor.slow.judge.lateness import LEAST, Lateness, Shares, lateness, latest
from doctor.slow.judge.pauses import CHANCE, StepPauses
from doctor.slow.judge.reasons import (
    ALSO_THERE,
    AT_WORK,
    BY_DESIGN,
    NO_DEVICE,
    STANDS_OUT,
    reasons,
    slept,
    unserved,
)
from doctor.slow.judge.series import Sampled, Series, is_pipeline
from doctor.slow.judge.words import lateness_words, milliseconds, percent
from doctor.text.grouped import grouped

PAUSED = 0.5
"""The share of the lost time from which on pauses explain it."""
UNEXPLAINED = 2 * LEAST
"""The smallest that names anybody if nothing says why."""
TOGETHER = 3
"""As many late ranks are told one by one if they differ."""


def several(
    seen: Sampled,
    found: Series,
    one: Lateness[Key],
    stops: StepPauses | None,
    links: Sequence[SlowCulprit],
    step: float | None,
    *,
    few: bool,
) -> list[SlowCulprit]:
    """All that are named. A link costs at most what the one that waits least waits itself."""
    alone = is_pipeline(seen)  # where one that is late makes those behind it wait less
    if links and alone:
        return [*links]
    late, shares = [*links], dict(found.shares)
    if stops and not (one.sure and not few and {stops.of} == one.who and stops.share < PAUSED * one.gap):
        pausing = _pausing(seen, stops, step)
        known = pausing.reason not in (*AT_WORK, LateReason.LOADER)
        known = known or bool(pausing.where and pausing.where.others < ALSO_THERE)
        late += [pausing] if known or stops.number > CHANCE else []
        if pausing in late and stops.of in one.who:
            del shares[stops.of]
            one = latest(shares, of_hosts(shares)) if len(shares) > 1 else replace(one, gap=0.0)
    if one.sure and not few:
        late += _late(seen, shares, one, step, alone=alone)
    least = min(mean(of) for of in found.shares.values())
    return sorted(late, key=lambda each: -(least if each.is_link else each.share))


def may_wait_for_device(seen: Sampled, late: SlowCulprit) -> bool:
    """Whether it only seems to work: a host that waits for its device does so in any line that uses it.
    Pauses and links are not known by lines.
    """
    whose = {key(each) for each in seen.job.ranks if each.host in late.hosts and each.rank in late.ranks}
    slow, _ = slow_devices(devices_of(seen))
    asleep = any(slept(seen, each, NO_DEVICE) >= STANDS_OUT for each in whose)
    works = late.reason in AT_WORK and late.lag in (Lag.LATE, Lag.STAGE)
    return seen.has_devices and works and not asleep and not whose.intersection(slow)


def of_hosts(shares: Mapping[Key, object]) -> list[list[Key]]:
    hosts = grouped((each[0], each) for each in shares)
    return [*hosts.values()] if len(hosts) > 1 else []


def _late(
    seen: Sampled, shares: Shares[Key], one: Lateness[Key], step: float | None, *, alone: bool
) -> Iterator[SlowCulprit]:
    """Those that are late, and who is late behind them; only they themselves if `alone`."""
    others = {each: of for each, of in shares.items() if each not in one.who}
    first, *behind = _one_by_one(seen, shares, one, step)
    if _by_chance(first):
        return
    if not alone and len(others) > 1:
        following = latest(others, of_hosts(others))
        behind += _one_by_one(seen, others, following, step) if following.sure else ()
    behind = [each for each in behind if not _by_chance(each)]
    yield replace(first, saves=max(0.0, first.least - max((each.share for each in behind), default=0.0)))
    for each in behind:
        yield replace(each, sentence=f"behind that, {each.sentence.replace('wait', 'would wait')}")


def _by_chance(late: SlowCulprit) -> bool:
    """Whether it may only get a processor later than the others, and no line shows more."""
    return late.lag is Lag.LATE and late.least < (LEAST if late.reason else UNEXPLAINED)


def _one_by_one(
    seen: Sampled, shares: Shares[Key], one: Lateness[Key], step: float | None
) -> Sequence[SlowCulprit]:
    """The late ones together; apart if they are few, and late for different reasons or very differently."""
    together = _late_ones(seen, shares, one, step)
    if together.whole_host or not 1 < len(one.who) <= TOGETHER:
        return [together]
    apart = []
    for late in sorted(one.who, key=lambda each: mean(shares[each])):
        of_one = {each: of for each, of in shares.items() if each == late or each not in one.who}
        apart.append(_late_ones(seen, of_one, lateness(of_one, [late]), step))
    causes = {each.reason for each in apart}
    differ = apart[0].share - apart[-1].share >= LEAST or (len(causes) > 1 and None not in causes)
    return apart if differ else [together]


def _late_ones(seen: Sampled, shares: Shares[Key], one: Lateness[Key], step: float | None) -> SlowCulprit:
    late = sorted(one.who, key=lambda each: mean(shares[each]))
    others = [each for each in shares if each not in one.who]
    waits = sorted(mean(shares[each]) for each in others)
    why = reasons(seen, next((each for each in late if seen.profiles(each)), late[0]), others, Lag.LATE)
    least = max(0.0, one.gap - (unserved(seen, late, others) if why.reason in AT_WORK else 0.0))
    said = lateness_words(one.gap, least, step)
    lag = Lag.STAGE if is_pipeline(seen) and why.reason in BY_DESIGN else Lag.LATE
    slow, words = slow_devices(devices_of(seen))
    return replace(
        culprit(seen, lag, late, one.gap, said if len(late) == 1 else said.replace("for it", "for them")),
        least=least,
        waits=mean(mean(shares[each]) for each in late),
        others=(waits[0], waits[-1]),
        t=one.t,
        agree=(one.agree, one.blocks),
        where=why.where,
        reason=why.reason,
        why=(*why.why, *((words,) if one.who.intersection(slow) else ())),
        whole_host=len(late) > 1 and {each for each in seen.keys if each[0] == late[0][0]} == {*late},
    )


def _pausing(seen: Sampled, stops: StepPauses, step: float | None) -> SlowCulprit:
    why = reasons(seen, stops.of, [each for each in seen.keys if each != stops.of], Lag.PAUSES)
    length = f"{stops.number} times for {milliseconds(stops.seconds)} each"
    if step is None:  # samples miss short collectives, so that one pause may be several steps
        length = f"again and again, for {milliseconds(stops.seconds)} or so at once"
    said = f"stops the job {length}, {percent(stops.share)} of the time"
    late = culprit(seen, Lag.PAUSES, [stops.of], stops.share, said)
    return replace(late, saves=stops.share, where=why.where, reason=why.reason, why=why.why)


def culprit(seen: Sampled, lag: Lag, late: Sequence[Key], share: float, said: str) -> SlowCulprit:
    members = [each for each in seen.job.ranks if key(each) in late]
    ranks = tuple(sorted(each.rank for each in members if each.rank is not None))
    hosts = tuple(dict.fromkeys(host for host, _ in late))
    return SlowCulprit(lag, hosts[0], hosts, ranks, late[0][1] if len(late) == 1 else None, said, share)
