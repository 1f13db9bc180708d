"""Judges the evidence of a job: who keeps it waiting. Pure: the same evidence gives the same judgement.

Nothing here touches a host or reads a clock. If the evidence is insufficient, no rank is accused.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import pairwise

from doctor.hang.judge.case import HangCase, case_of, groups_of
from doctor.hang.judge.decide import decide
from doctor.hang.judge.judgement import (
    Cause,
    HangCulprit,
    HangFinding,
    HangState,
    Judgement,
    RankStanding,
    Standstill,
    Wait,
)
from doctor.hang.judge.pace import TIMES, logged_pace
from doctor.hang.judge.position import stepped
from doctor.hang.judge.rights import rights_of, stackless
from doctor.hang.judge.start_judgement import job_of, judge_start
from doctor.hang.judge.weigh import weigh
from doctor.live.evidence import JobChoice, LiveEvidence
from doctor.live.jobs.claims import counted
from doctor.live.jobs.find import MOST_JOBS, chosen, chosen_starts, find_jobs
from doctor.live.jobs.job import RunningJob
from doctor.live.jobs.starting import starting_jobs
from doctor.live.libraries.consult import opinions
from doctor.live.onhost.ranks import RANKLESS
from doctor.live.places import short
from doctor.live.reach import reach_of
from doctor.live.wires import Key, key
from doctor.text.nodeset import fold
from doctor.text.ranks import ranks_text
from doctor.waits import longest_way

__all__ = ["LIMIT", "HangState", "Judgement", "judge", "judged"]

ANY = JobChoice()
LIMIT = 60.0
"""Seconds without progress that count as a hang: a shorter wait may be a long step of a healthy job."""
_STATES = {
    (HangState.HANG, True): ("hangs", "hang"),
    (HangState.WAITS, False): ("waits", "wait"),
    (HangState.MOVES, False): ("moves", "move"),
}
"""The verb for one job and for several jobs, by verdict and by whether there are culprits."""
_OPEN = ("is not decided", "are not decided")


def judge(evidence: LiveEvidence, *, choice: JobChoice = ANY, limit: float = LIMIT) -> Judgement:
    """Judge the job that the options choose, or the only one. If several are left, judge each of them."""
    jobs = find_jobs(evidence)
    starts = starting_jobs(evidence, jobs)
    unreached = _unreached(evidence)
    if not jobs and not starts:
        said = "No job was found on the hosts that answered." if evidence.hosts else "No host answered."
        return Judgement(HangState.NO_JOB, evidence.started, said, limit, unreached=unreached)
    found = chosen(jobs, choice)
    begun = chosen_starts(starts, choice)
    if not found and not begun:
        said = _no_such(choice)
        return Judgement(HangState.NO_JOB, evidence.started, said, limit, jobs=jobs, unreached=unreached)
    found, notes = counted(found, jobs) if found else ((), ())
    if len(jobs) >= MOST_JOBS:
        notes = (*notes, f"more than {MOST_JOBS} jobs seem to run here; the rest are not judged")
    every = (*found, *map(job_of, begun))
    if len(every) == 1:
        if begun:
            return judge_start(evidence, begun[0], every, limit)
        return _judge_job(evidence, found[0], found, limit, notes)
    each = (
        *(_judge_job(evidence, job, every, limit) for job in found),
        *(judge_start(evidence, start, every, limit) for start in begun),
    )
    return Judgement(
        HangState.SEVERAL,
        evidence.started,
        _several(each),
        limit,
        jobs=every,
        each=each,
        notes=notes,
        unreached=unreached,
    )


def judged(evidence: LiveEvidence) -> Judgement:
    """The judgement by the options that the evidence holds."""
    limit = evidence.choice.limit
    return judge(evidence, choice=evidence.choice, limit=LIMIT if limit is None else limit)


def _several(each: Sequence[Judgement]) -> str:
    """ "3 jobs run here: 1 hangs, 2 move." """
    states = Counter(_STATES.get((one.verdict, bool(one.culprits)), _OPEN) for one in each)
    said = (f"{n} {state[n > 1]}" for state in (*_STATES.values(), _OPEN) if (n := states[state]))
    return f"{len(each)} jobs run here: {', '.join(said)}."


def _no_such(choice: JobChoice) -> str:
    said = (
        "that process" if choice.pid is not None else "",
        "that port" if choice.master_port is not None else "",
        f"SLURM_JOB_ID {choice.slurm_job}" if choice.slurm_job is not None else "",
        f"ranks of {choice.user}" if choice.user is not None else "",
    )
    return f"No job has {' and '.join(filter(None, said))}."


def _judge_job(
    evidence: LiveEvidence,
    job: RunningJob,
    jobs: tuple[RunningJob, ...],
    limit: float,
    notes: tuple[str, ...] = (),
) -> Judgement:
    case, pace = case_of(evidence, job), logged_pace(evidence, job)
    limit = max(limit, TIMES * pace)
    finding, heard = weigh(case, decide(case, limit, bool(evidence.unreached)), opinions(evidence, job.ranks))
    verdict, sentence = _verdict(case, finding, limit, pace)
    if verdict is HangState.MOVES:
        finding = HangFinding(standings=case.told(case.outside))
    return Judgement(
        verdict,
        evidence.started,
        sentence,
        limit,
        job,
        jobs,
        finding=finding,
        stands=_standstill(case, finding),
        rights=rights_of(evidence, job),
        heard=heard,
        notes=(*finding.notes, *stackless(evidence, job), *notes, *_rankless(evidence, job)),
        unreached=_unreached(evidence),
        reach=reach_of(evidence),
    )


def _unreached(evidence: LiveEvidence) -> tuple[tuple[str, str], ...]:
    return tuple(sorted(evidence.unreached.items()))


def _standstill(case: HangCase, finding: HangFinding) -> Standstill:
    told = {each.key: each for each in finding.standings}
    ranks = tuple(told.get(each.key, each) for each in case.standings)
    return Standstill(groups_of(case.inside), _chain(case, finding), ranks, case.still, not case.timed)


def _verdict(case: HangCase, finding: HangFinding, limit: float, pace: float) -> tuple[HangState, str]:
    if not any(rank.a or rank.b for rank in case.job.ranks):
        return HangState.UNKNOWN, "The ranks were listed, but the look at them was not answered."
    alone = case.job.expected < 2 and len(case.standings) == 1
    if alone and not stepped(case.job.ranks[0]):  # one that polls goes from line to line, too
        return HangState.UNKNOWN, _alone(case)
    if case.moves:
        return HangState.MOVES, "The job moves."
    who, still = _who(finding.named), case.still
    if case.strange:
        short_wait = still is not None and still < limit and not finding.named
        said = f"The job has exchanged nothing for {int(still or 0)} s; this may be normal."
        return (HangState.WAITS, said) if short_wait else (HangState.UNKNOWN, finding.sentence)
    if finding.meets:
        if case.job.age < limit:
            return HangState.WAITS, "The job is starting: its ranks wait for each other; this may be normal."
        return HangState.HANG if finding.decided else HangState.UNKNOWN, finding.sentence
    if finding.at_once and finding.decided:
        return HangState.HANG, f"The job waits for {who}, which cannot go on."
    if finding.works:
        said = f"Others wait for {who}, which works; this may be normal."
        return HangState.WAITS, said if finding.named else finding.sentence
    if not case.inside and not finding.decided:
        if case.timed and still is not None and still < min(limit, case.job.age):
            said = f"No rank has been in a collective for {int(still)} s; this may be normal."
            return HangState.WAITS, said
        young = case.job.age < limit and not finding.named
        return HangState.WAITS if young else HangState.UNKNOWN, finding.sentence
    waits = f"waits for {who}" if finding.named else "waits"
    if still is None or (still < limit and not case.timed):
        return HangState.UNKNOWN, f"The job {waits}, and nothing shows for how long."
    if still < limit:
        return HangState.WAITS, f"The job {waits} for {int(still)} s; this may be normal."
    if finding.unproved:
        least = "" if case.timed else "at least "
        return HangState.UNKNOWN, _unproved(finding.named, f"{least}{int(still)} s", pace)
    return HangState.HANG, finding.sentence or f"The job {waits}."


def _unproved(named: tuple[HangCulprit, ...], still: str, pace: float) -> str:
    who = _who(named)
    has = "has" if len(named) == 1 else "have"
    if all(each.cause is Cause.COMPUTES for each in named):
        computed = f"{who[:1].upper()}{who[1:]} {has} computed for {still}"
        if pace:
            what = "this is an endless loop, or not a training step"
            return f"{computed}; its log shows steps of {pace:.2g} s, so {what}."
        return f"{computed}; if its steps are shorter than that, it is an endless loop."
    return f"Others have waited for {who} for {still}; what it does may be work that goes on."


def _rankless(evidence: LiveEvidence, job: RunningJob) -> Iterator[str]:
    """Notes about hosts that run no rank of this job but a launcher without ranks: it may be this job's."""
    for host in evidence.hosts if job.missing else ():
        if host.host not in job.hosts:
            yield from (f"{host.host}: {said}" for said in host.unread if RANKLESS in said)


def _who(named: tuple[HangCulprit, ...]) -> str:
    """ "rank 3 on node2" """
    if not named:
        return "somebody"
    hosts = fold(dict.fromkeys(each.host for each in named))
    ranks = [each.rank for each in named if each.rank is not None]
    one = f"process {named[0].pid}" if named[0].pid is not None else "a rank"
    return f"{ranks_text(ranks, most=4) if ranks else one} on {hosts}"


def _alone(case: HangCase) -> str:
    only = case.told(case.standings)[0]
    if only.inside or only.doing is None:
        return "The job is a single rank, and it waits in a collective."
    where = f" in {short(only.function)}, {only.place}" if only.place else ""
    return f"The job is a single rank: it {only.doing.words}{where}. Nobody waits for it."


def _chain(case: HangCase, finding: HangFinding) -> tuple[Wait, ...]:
    """The longest chain of waits that ends at a culprit; empty if all of them wait at the same place."""
    at: dict[Key, RankStanding] = {each.key: each for each in case.standings}
    members = {key(member): member for member in case.job.ranks}
    ends = [k for k, m in members.items() if (m.host, m.pid) in {(c.host, c.pid) for c in finding.named}]
    if any(each.cause in (Cause.MISMATCH, Cause.LINK, Cause.LAST) for each in finding.named):
        return ()
    way = longest_way(case.waits, ends)
    steps = []
    for of, on in pairwise(way):
        one, other, here = members[of].rank, members[on].rank, at.get(of)
        if one is None or other is None or here is None:
            return ()
        steps.append(Wait(one, other, here.operation, here.place, here.function))
    return tuple(steps) if len({(each.operation, each.place) for each in steps}) > 1 else ()
