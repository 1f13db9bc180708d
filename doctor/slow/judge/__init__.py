"""Judges the samples of a job: who is late, and why. Pure: the same evidence gives the same judgement.

Links, ranks and hosts that wait least, pauses; if there are none of these, processors. Who is late is never
called a culprit.
"""

from collections.abc import Sequence
from dataclasses import replace
from statistics import mean, median_high

from doctor.hang.judge import judged as judge_hang
from doctor.hang.judge.judgement import HangState
from doctor.live.jobs.job import RunningJob
from doctor.live.places import made_step, step_of
from doctor.live.wires import Key, key
from doctor.slow.evidence import SlowEvidence
from doctor.slow.judge.culprits import culprit, may_wait_for_device, of_hosts, several
from doctor.slow.judge.devices import clocks_words, devices_of, slow_devices
from doctor.slow.judge.judgement import Lag, LateReason, RankShare, SlowCulprit, SlowJudgement, SlowState
from doctor.slow.judge.lateness import LEAST, Lateness, Shares, lateness, latest
from doctor.slow.judge.links import network_words, slow_link
from doctor.slow.judge.pauses import pauses
from doctor.slow.judge.reasons import NO_STACKS, is_starved, places, reasons, starved_share
from doctor.slow.judge.series import Sampled, Series, is_pipeline, sampled, series
from doctor.slow.judge.words import between, keys_words, percent, who
from doctor.text.nodeset import fold

__all__ = ["SlowJudgement", "SlowState", "judge"]

STEPS, FEWER, CLEARLY = 30, 10, 0.5
"""The fewest steps that can name anybody; and if the others wait for it for such a share of the time."""
WORTH, TOO_NOISY = 0.15, 0.2
"""If one rank may cost this share of the time without being named, it looks on, or calls nobody well."""
WAITS_ITSELF = 2.0
"""A stage that itself waits so many times as long as it costs does not hold up its pipeline."""
SAME_STEPS, RESTARTS = 0.25, 10
"""How much the steps of two ranks may differ; with so many times more collectives the counter began again."""
HIDDEN = "hidden behind it"
NOT_TIMED = "the clocks were read; whether the others wait for it was not seen"
TOO_FEW = "Too few samples were taken: a host is very busy, or has very many connections."
AT_DEVICE = (
    "where a rank seems to compute, its host may spin and wait for its device: "
    "time the forward of each rank between two calls of synchronize()"
)
NO_DEVICES = "a slow device would not be seen: all hosts wait alike for it"
_STATES = {HangState.NO_JOB: SlowState.NO_JOB, HangState.SEVERAL: SlowState.SEVERAL}


def judge(evidence: SlowEvidence) -> SlowJudgement:
    """The judgement by the options that the evidence holds."""
    hang = judge_hang(evidence)
    made = SlowJudgement(SlowState.UNKNOWN, evidence.started, hang.sentence, hang, hang.job, hang.jobs)
    if hang.job is None:
        state = _STATES.get(hang.verdict, SlowState.UNKNOWN)
        said = f"{len(hang.jobs)} jobs run here." if state is SlowState.SEVERAL else hang.sentence
        return replace(made, state=state, sentence=said)
    seen = sampled(evidence, hang.job)
    if not seen.rounds:
        none = f"No samples of the job were taken on all of {fold(hang.job.hosts)}."
        return replace(made, sentence=f"{_late_hosts(seen)} answered too late." if seen.lost else none)
    sends = is_pipeline(seen)
    entries = [
        sum(max(each.entries, each.wait_entries * sends) for each in seen.ranks(of)) for of in seen.keys
    ]
    steps, step = _steps(evidence, hang.job)
    gloo = not seen.has_devices and all(any(r.workers for r in seen.ranks(of)) for of in seen.keys)
    if gloo and steps and median_high(entries) > RESTARTS * steps:
        steps = step = None
    still = hang.verdict is HangState.HANG or (gloo and hang.verdict is not HangState.MOVES)
    if not steps and not any(entries) and still:
        said = f"Nothing moved for {seen.seconds:.0f} s. {hang.sentence}"
        return replace(made, state=SlowState.STANDS, sentence=said, seconds=seen.seconds)
    known = series(seen)
    found = known if known and not known.few else None
    made = replace(
        made,
        seconds=seen.seconds,
        samples=known.samples if known else 0,
        by=known.by if known else "",
        steps=steps,
        step_seconds=step,
        ranks=tuple(_paces(seen, found)),
    )
    # Each step has a collective or several; who is late is seldom seen inside one, so half may have less.
    entered = median_high(entries) if found is not None and found.by == "threads" and gloo else None
    made = _of_ranks(made, seen, found, entered if steps is None else steps, slow_link(seen))
    if not seen.lost:
        return made
    lost = f"{len(seen.lost)} of {len(seen.lost) + len(seen.rounds)} rounds of samples were lost"
    return replace(made, notes=(*made.notes, f"{lost}: {_late_hosts(seen)} answered too late"))


def _late_hosts(seen: Sampled) -> str:
    return fold(dict.fromkeys(host for of in seen.lost.values() for host in of)) or fold(seen.job.hosts)


def _steps(evidence: SlowEvidence, job: RunningJob) -> tuple[int | None, float | None]:
    """How many steps were made between the first and the last look, and how long one takes; None if the
    ranks do not agree: a number that was read while it changed may be any.
    """
    apart = {host.host: host.apart for host in evidence.hosts}
    made = []
    for rank in job.ranks:
        before, after = step_of(rank.a), step_of(rank.b)
        if before is not None and after is not None and made_step(before, after):
            made.append((after - before, apart.get(rank.host, 0.0)))
    if not made or min(made)[0] < 0:
        return None, None
    steps, seconds = sorted(made)[len(made) // 2]
    agree = [each for each, _ in made if abs(each - steps) <= max(SAME_STEPS * steps, 2)]
    return (steps, seconds / steps) if 2 * len(agree) > len(made) else (None, None)


def _paces(seen: Sampled, found: Series | None) -> list[RankShare]:
    at, devices = places(seen), devices_of(seen)
    shares = found.shares if found else {}
    return [
        RankShare(
            each.rank,
            key(each),
            mean(shares[key(each)]) if key(each) in shares else None,
            at.get(key(each), ""),
            devices.get(key(each)),
        )
        for each in seen.job.ranks
    ]


def _named(made: SlowJudgement, *late: SlowCulprit) -> SlowJudgement:
    return replace(
        made,
        state=SlowState.LINK if late[0].is_link else SlowState.LATE,
        late=late,
        sentence=_said_of(late[0])
        if len(late) == 1
        else f"{_said_of(late[0])[:-1]}; {len(late) - 1} more late.",
        notes=(*made.notes, f"what costs less may be {HIDDEN}: look again after the repair"),
    )


_SAID = {
    Lag.STARVED: "is short of a processor",
    Lag.PAUSES: "stops the job again and again",
    Lag.STAGE: "is the slowest stage of the pipeline: {}",
    Lag.DEVICE: "may be late: {}",
    Lag.LATE: "is late: {}",
}


def _said_of(late: SlowCulprit) -> str:
    words = _SAID.get(late.lag, "{}")
    if late.lag is Lag.LATE and len(late.ranks) > 1 and not late.whole_host:
        words = "are late: {}"
    named = who(late)
    return f"{named[:1].upper()}{named[1:]} {words.format(late.sentence)}."


def _of_ranks(
    made: SlowJudgement, seen: Sampled, found: Series | None, steps: int | None, link: SlowCulprit | None
) -> SlowJudgement:
    one = latest(found.shares, of_hosts(found.shares)) if found else None
    enough = FEWER if one and one.sure and one.gap >= CLEARLY else STEPS
    few = steps is not None and steps < enough and not (found and _nobody_waits(found))
    made = replace(made, few=few or (found is None and bool(made.by)))
    links = [link] if link else []
    if found is None or one is None:
        if links:
            return _named(made, *links)
        stalled = _starved(made, seen) or _throttled(made, seen)
        said = TOO_FEW if made.by else _unseen(seen)
        later = len(seen.keys) > 1 and not all(rank.hidden for rank in seen.job.ranks)
        later = later and not any(map(seen.failed, seen.keys))
        return stalled or replace(made, sentence=said, notes=(), more=later)
    stops = pauses(seen, made.step_seconds) if steps != 0 else None
    late = several(seen, found, one, stops, links, made.step_seconds, few=few)
    if any(each.lag is Lag.STAGE and (each.waits or 0.0) > WAITS_ITSELF * each.least for each in late):
        late = [each for each in late if each.lag is not Lag.STAGE]
        one = replace(one, next=0.0, smallest=max(one.smallest, one.gap))
    late = [replace(each, doubted=may_wait_for_device(seen, each)) for each in late]
    shown = found.by == "threads"  # of NCCL, where there are devices: its host calls late, by a line if known
    if sure := [e for e in late if not e.doubted or (shown and (e.where or NO_STACKS in e.why))]:
        named = replace(_named(made, *sure), more=few and bool(links))
        doubts = (AT_DEVICE,) if any(each.doubted for each in sure) else ()
        return replace(named, notes=(*doubts, *named.notes))
    if stalled := _starved(made, seen) or _throttled(made, seen):
        return replace(stalled, more=few or one.maybe)
    if few:
        said = f"Only {steps} steps were seen: too few to say who is late."
        return replace(made, sentence=said, more=True)
    return _nobody(made, seen, found, one, doubt=bool(late))


def _nobody_waits(found: Series) -> bool:
    """Whether all wait, in nearly all parts of the time, too little for anybody to be late."""
    most = max(found.shares.values(), key=mean, default=())
    return bool(most) and mean(most) < LEAST and sum(map(bool, most)) >= len(most) - 2


def _starved(made: SlowJudgement, seen: Sampled) -> SlowJudgement | None:
    """The rank that waits for a processor, if only one does."""
    shares = {each: starved_share(seen, each) for each in seen.keys if seen.ranks(each)}
    if len(shares) < 2:
        return None
    top = max(shares, key=lambda each: shares[each])
    others = [each for each in shares if each != top]
    if not shares[top] or not is_starved(seen, top, others):
        return None
    why = reasons(seen, top, others, Lag.STARVED)
    said = f"waits for a processor {percent(shares[top])} of the time"
    late = culprit(seen, Lag.STARVED, [top], shares[top], said)
    return _named(made, replace(late, where=why.where, reason=why.reason, why=why.why))


def _throttled(made: SlowJudgement, seen: Sampled) -> SlowJudgement | None:
    """The ranks whose devices run slower than all others: a cause, of which the cost is not seen."""
    slow, words = slow_devices(devices_of(seen))
    if not slow:
        return None
    whose = "its device is" if len(slow) == 1 else "their devices are"
    late = culprit(seen, Lag.DEVICE, slow, 0.0, f"{whose} slower: {words}")
    return _named(made, replace(late, reason=LateReason.CLOCK, why=(NOT_TIMED,)))


def _nobody(
    made: SlowJudgement, seen: Sampled, found: Series, one: Lateness[Key], *, doubt: bool
) -> SlowJudgement:
    """Nobody is late, and what would have been named: only if all ranks were seen. `doubt`: somebody may be,
    or wait for its device.
    """
    waits = sorted(mean(of) for of in found.shares.values())
    lowest = keys_words(seen.job, sorted(one.who))
    maybe = f"{lowest} waits {percent(max(0.0, one.gap))} less than the others" if one.gap > 0 else ""
    if [*seen.job.missing, *(host for host, _ in made.hang.unreached)]:
        said = "Nobody is late among the ranks that were seen, and some were not."
        return replace(made, sentence=said, maybe=maybe, more=one.maybe)
    apart = between(waits[0], waits[-1])
    more = one.maybe or one.smallest > WORTH
    stages = is_pipeline(seen)
    carried = seen.has_devices and found.by == "threads"
    waiting = "Collectives of each rank are under way" if carried else "The ranks wait"
    wait = f"{'The stages of the pipeline wait for one another' if stages else waiting} {apart} of the time"
    uneven = waits[-1] - waits[0] >= one.smallest and not stages  # stages of unequal length are made so
    if uneven or one.maybe or one.smallest > TOO_NOISY or doubt:
        said = f"{wait}, and {'no stage is clearly the slowest' if stages else 'it is not clear for whom'}."
        if not stages and (top := _waits_alone(found.shares)):
            named = keys_words(seen.job, [top])
            said = f"{named[:1].upper()}{named[1:]} waits {percent(waits[-1])} of the time, "
            said += "far more than the others: they take longer than it, or it has less to do."
        if doubt:
            return replace(made, sentence=said, notes=(AT_DEVICE,))
        return replace(made, sentence=said, maybe=maybe, more=True)
    alike = ", alike" if waits[-1] - waits[0] < LEAST else ", each time for another one"
    said = f"Nobody is late. {wait}{', as they do by design' if stages else alike}."
    network = network_words(seen)
    blind = found.by == "stacks" or seen.has_devices
    clocks = (clocks_words(devices_of(seen)) or NO_DEVICES) if blind else ""
    made = replace(made, state=SlowState.EVEN, sentence=said, notes=tuple(filter(None, (network, clocks))))
    return replace(made, smallest=one.smallest, maybe=maybe, more=more)


def _waits_alone(shares: Shares[Key]) -> Key | None:
    """The one that waits for all others, who are too many to be called late."""
    top = max(shares, key=lambda each: mean(shares[each]))
    others = [each for each in shares if each != top]
    return top if len(others) > 1 and lateness(shares, others).sure else None


def _unseen(seen: Sampled) -> str:
    if len(seen.keys) < 2:
        return "The job is a single rank: nobody waits for it."
    if all(rank.hidden for rank in seen.job.ranks):
        return "Nothing shows who is late: the ranks of another user may not be read."
    return "Nothing shows when the ranks wait for each other: neither threads of gloo nor their stacks."
