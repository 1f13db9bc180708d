"""What to do about a hang, and what to set so that the next one is easier to explain."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from doctor.hang.judge.judgement import Cause, HangCulprit, HangState, HeldLock, Judgement
from doctor.live import threads
from doctor.live.jobs.job import RunningJob
from doctor.live.pyspy import fetch
from doctor.live.reach import Reach
from doctor.text.grouped import grouped
from doctor.text.hostprogram import sections
from doctor.text.nodeset import fold
from doctor.text.ranks import ranks_text

MOST = 3
"""The most culprits for whom commands are shown."""
_NVIDIA = "ib-port-down,nic-errors,nvlink-down,gpu-xid"
_NPU = "device-link-*,device-unhealthy,device-unreachable"
_START = "port-unreachable,firewall-blocks,route-leads-nowhere"
_NETWORK = "port-unreachable,large-packets-lost,firewall-blocks,nic-errors,mtu-mismatch"
_OWN = {
    *(Cause.SLEEPS, Cause.COMPUTES, Cause.LOCK, Cause.QUEUE, Cause.GIL, Cause.PIPE, Cause.LOADER),
    *(Cause.CHILD, Cause.FORK, Cause.LEFT, Cause.TERMINAL),
}
"""Causes inside the rank itself."""
_ENDLESS = _OWN - {Cause.COMPUTES}
"""Causes that do not pass by themselves. A computation may end."""
_COMPARE = "compare what each rank gives to that call: sizes, types, src, group"
_OF_HOST = {Cause.KERNEL, Cause.STORAGE, Cause.GONE}
"""Causes that may be of the host, whatever runs there."""
_AGAIN = "look again with --for 60: a rank that is still at the same line then is the one to look at"
_TOLD = sections(__file__, "advice.txt")
_DO, _NEXT = _TOLD["causes"], _TOLD["next time"]
_CERTAIN = {Cause.ENDED, Cause.STOPPED, Cause.TRACED, Cause.FROZEN, Cause.KERNEL}


@dataclass(frozen=True, slots=True)
class Advice:
    do: tuple[str, ...] = ()
    """What to do, in sentences. What to type is in `commands`."""
    commands: tuple[str, ...] = ()
    next_time: tuple[str, ...] = ()
    """Environment variables with which more would have been seen. Nothing has to be installed."""


def advice_of(judgement: Judgement) -> Advice:
    job, start, lacks = judgement.job, judgement.start, judgement.rights.lacks if judgement.rights else ()
    if job is None or judgement.verdict is HangState.MOVES:
        return Advice()
    if start:
        checks = (judgement.reach.check(job.hosts, _START),) if start.check else ()
        return Advice(start.do, (*start.commands, *checks))
    hung = judgement.verdict in (HangState.HANG, HangState.UNKNOWN)
    told = _about(judgement, job) if hung else _not_yet(judgement)
    more = _next_time(judgement, job) if hung else ()
    pyspy = (f"fetch py-spy for {' and '.join(lacks)}, then look again with --pyspy FILE",) if lacks else ()
    return Advice((*told.do, *pyspy), (*told.commands, *map(fetch, lacks)), more)


def _not_yet(judgement: Judgement) -> Advice:
    """What decides whether a wait is a hang, and when."""
    counts = f"it counts as a hang after {judgement.limit:.0f} s without progress (--limit S)"
    watch = f"{judgement.reach.other('hang')} --watch    # until it hangs or ends"
    return Advice(() if judgement.finding.works else (counts,), (watch,))


def _about(judgement: Judgement, job: RunningJob) -> Advice:
    named, reach = judgement.named, judgement.reach
    unreached, sure = [host for host, _ in judgement.unreached], bool(judgement.culprits)
    stands = judgement.stands
    timeless = judgement.verdict is HangState.UNKNOWN and stands.groups and stands.at_least
    if job.first and all(rank.hidden for rank in job.ranks):
        owner = next((rank.user for rank in job.ranks if rank.user != "root"), "")
        said = f"look again as {owner}, or with --sudo" if owner else "look again with --sudo"
        return Advice((said,), (reach.again(job.first.pid, ("--sudo",)),))
    if judgement.finding.do:
        return Advice(judgement.finding.do)
    if timeless and not (job.missing and unreached):
        return Advice(("look again with --for 60: if nothing moves in that time either, it hangs",))
    if job.missing and not any(each.cause in _CERTAIN for each in named):
        if unreached:
            said = f"find out why {fold(unreached)} {'does' if len(unreached) == 1 else 'do'} not answer"
            return Advice((said,), (reach.check(unreached),))
        if not named:
            return Advice(("name all hosts of the job, so that its other ranks are seen too",))
    if judgement.finding.below:
        if len(job.hosts) == 1 and not any(threads.uses_device(rank.b) for rank in job.ranks):
            return Advice((_COMPARE,))
        return Advice(
            (_COMPARE, "look below Python, at the devices and the network between them"),
            (_check(job, reach),),
        )
    if not named:
        held = {each.doing.held for each in judgement.finding.standings if each.doing and each.doing.held}
        return Advice(tuple(map(_of_lock, held)) or (_AGAIN,))
    commands = (command for each in named[:MOST] for command in _commands(each, job, named, reach, sure))
    return Advice(
        (*_sentences(named, sure), *_without(job, named)), tuple(dict.fromkeys(filter(None, commands)))
    )


def _sentences(named: Sequence[HangCulprit], sure: bool) -> Iterator[str]:
    alike = grouped(((each.cause, each.place), each) for each in named)
    said = [_sentence(cause, place, of, sure) for (cause, place), of in alike.items()]
    yield from list(dict.fromkeys(filter(None, said)))[:MOST]
    yield from list(dict.fromkeys(map(_of_lock, (each.held for each in named if each.held))))[:MOST]


def _of_lock(held: HeldLock) -> str:
    path = held.path or "the file"
    if held.by_rank:
        return f"release the lock {path} before the collective in which its holder waits"
    if held.holder is not None:
        return f"if nobody needs process {held.holder} any more, end it: it holds the lock {path}"
    return f"see on each host that shares {path} who uses it (lslocks, fuser -v); if nobody does, remove it"


def _without(job: RunningJob, named: Sequence[HangCulprit]) -> Iterator[str]:
    """How to leave out hosts that may keep every job waiting."""
    sick = list(dict.fromkeys(each.host for each in named if each.cause in _OF_HOST))
    rest = [host for host in job.hosts if host not in sick]
    if sick and rest:
        by_slurm = f" (sbatch --exclude={fold(sick)})" if any(rank.slurm_job for rank in job.ranks) else ""
        yield f"to leave {fold(sick)} out, start the job again on {fold(rest)}{by_slurm}"


def _check(job: RunningJob, reach: Reach) -> str:
    npu = any(threads.uses_npu(rank.b) for rank in job.ranks)
    device = any(threads.uses_device(rank.b) for rank in job.ranks)
    return reach.check(job.hosts, _NPU if npu else _NVIDIA if device else _NETWORK)


def _sentence(cause: Cause, place: str, of: Sequence[HangCulprit], sure: bool) -> str:
    ranks = [each.rank for each in of if each.rank is not None]
    one = f"process {of[0].pid}" if of[0].pid is not None else f"the rank on {of[0].host}"
    who = ranks_text(ranks, most=MOST) if ranks else one
    which = f"process {of[0].by}" if of[0].by else who
    at = f" at {place}" if place else " with more rights" if cause is Cause.LAST else ""
    innocent = "; the network between the ranks is not the cause" if sure and cause in _OWN else ""
    own = of[0].do if place or "{place}" not in of[0].do else ""
    said = own or _DO.get(cause.name, "look at {which}{at}")
    return said.format(who=who, which=which, at=at, place=place) + innocent


def _commands(
    each: HangCulprit, job: RunningJob, named: Sequence[HangCulprit], reach: Reach, sure: bool
) -> Iterable[str]:
    if each.cause is Cause.LINK:
        yield reach.check(dict.fromkeys(other.host for other in named), _NETWORK)
        return
    lost = next((one for one in job.lost if one.host == each.host), None)
    if each.cause is Cause.GONE and lost:
        boot = "-b -1 " if lost.started is not None else ""
        yield reach.on(each.host, f"journalctl {boot}-n 50 --no-pager")
    if each.pid is None or each.cause in (Cause.ENDED, Cause.MISMATCH):
        return
    if each.cause is Cause.STOPPED and (each.by or each.key in job.bound):
        yield reach.on(each.host, f"kill -CONT {each.by or each.pid}")
    elif each.cause is Cause.FROZEN:
        yield reach.on(each.host, f"cat /proc/{each.pid}/cgroup")
    elif each.cause in (Cause.KERNEL, Cause.STORAGE):
        seen = any(rank.b and rank.b.kernel for rank in job.ranks if (rank.host, rank.pid) == each.key)
        unseen = f"sudo cat /proc/{each.pid}/stack"
        yield reach.on(each.host, "journalctl -k -n 50 --no-pager" if seen else unseen)
    elif each.cause is Cause.LAST and not each.frames:
        yield reach.again(each.pid, ("--sudo",))
    else:
        if reach.on(each.host, "true"):
            pid = next(one.pid for one in named if one.pid is not None)
            yield f"{reach.again(pid)}    # is it still there?"
        holder = each.held.holder if each.held else None
        own = {(member.host, member.pid) for member in (*job.ranks, *job.helpers)}
        foreign = holder is not None and (each.host, holder) not in own
        if foreign and (end := reach.on(each.host, f"kill {holder}")):
            yield f"{end}    # ends the process that holds the lock"
        if sure and each.cause in _ENDLESS and (end := reach.on(each.host, f"kill -ABRT {each.pid}")):
            ends = "or, to give up: ends" if foreign else "ends"
            yield f"{end}    # {ends} the job, with an error in its log"


def _next_time(judgement: Judgement, job: RunningJob) -> tuple[str, ...]:
    if not judgement.stands.groups:
        return ()
    named, stacks = judgement.named, judgement.rights and judgement.rights.stacks
    looks = [rank.b for rank in job.ranks]
    differ = any(each.cause is Cause.MISMATCH for each in named) and not judgement.finding.do
    own = () if stacks else (_NEXT["STACKS"],)
    if named and not differ and not any(each.cause in (Cause.LAST, Cause.BEHIND) for each in named):
        return own
    if any(map(threads.uses_npu, looks)):
        return (*own, _NEXT["NPU STATUS"], _NEXT["NPU HEARTBEAT"])
    if any(map(threads.uses_device, looks)):
        return (*own, _NEXT["RECORDER"], _NEXT["RECORDER FILES"])
    return (*own, *((_NEXT["DETAIL"],) if differ else ()))
