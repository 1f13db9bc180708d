"""What to do about a hang, and what to set so that the next one is easier to explain."""

from __future__ import annotations

import shlex
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from doctor.hang.judge.judgement import Cause, HangCulprit, HeldLock
from doctor.live import threads
from doctor.live.evidence import JobMember, LiveEvidence
from doctor.live.jobs.job import RunningJob
from doctor.live.places import frames_of, shown_frames
from doctor.live.pyspy import fetch
from doctor.text.nodeset import fold, is_host, unfold
from doctor.text.ranks import ranks_text
from doctor.transport.way import Way

MOST = 3
"""The most culprits for whom commands are shown."""
_NVIDIA = "ib-port-down,nic-errors,nvlink-down,gpu-xid"
_NPU = "device-link-*,device-unhealthy,device-unreachable"
_NETWORK = "port-unreachable,large-packets-lost,firewall-blocks,nic-errors,mtu-mismatch"
_OWN = {
    *(Cause.SLEEPS, Cause.COMPUTES, Cause.LOCK, Cause.GIL, Cause.PIPE, Cause.LOADER),
    *(Cause.CHILD, Cause.FORK, Cause.LEFT),
}
"""Causes inside the rank itself."""
_ENDLESS = _OWN - {Cause.COMPUTES}
"""Causes that do not pass by themselves. A computation may end."""
_OF_HOST = {Cause.KERNEL, Cause.STORAGE, Cause.GONE}
"""Causes that may be of the host, whatever runs there."""
_CERTAIN = {Cause.ENDED, Cause.STOPPED, Cause.TRACED, Cause.FROZEN, Cause.KERNEL}


@dataclass(frozen=True, slots=True)
class Advice:
    sentences: tuple[str, ...]
    commands: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Reach:
    """How to reach the hosts again."""

    way: Way
    local: bool
    """Whether the only host is this machine."""
    nodes: tuple[str, ...] = ()
    """All hosts that were asked."""
    chosen: tuple[tuple[str, str], ...] = ()
    """The options that chose the job."""

    def check(self, hosts: Collection[str], only: str = "") -> str:
        in_order = unfold(fold(hosts)) if all(map(is_host, hosts)) else list(hosts)
        return self.way.typed("check", in_order, (("--only", only),) if only else ())

    def again(self, job: RunningJob) -> str:
        """The command that repeats this look with --sudo."""
        options = (("--pid", str(job.first.pid if job.first else 0)), ("--sudo",))
        return self.way.typed("hang", self.nodes, options)

    def other(self, command: str) -> str:
        """The command that asks the same hosts another question about the job."""
        return self.way.typed(command, self.nodes, self.chosen)

    def on(self, host: str, command: str) -> str:
        way = replace(self.way, reached=(*self.way.reached, ("--local",))) if self.local else self.way
        return way.login(host, shlex.split(command))


def reach_of(evidence: LiveEvidence) -> Reach:
    options = zip(("--pid", "--master-port", "--job", "--rank-user"), evidence.choice.of_job, strict=True)
    chosen = tuple((option, str(value)) for option, value in options if value is not None)
    return Reach(evidence.way or Way(), evidence.local, evidence.asked, chosen)


def advice(
    job: RunningJob,
    named: Sequence[HangCulprit],
    unreached: Collection[str],
    reach: Reach,
    *,
    below: bool,
    timeless: bool,
    strange: bool,
    sure: bool,
) -> Advice:
    """`below`: all ranks wait in the same operation. `timeless`: it is unknown for how long they have waited.
    `strange`: the processes of the job may not be read. `sure`: it hangs, and the culprit is decided.
    """
    if strange:
        owner = next((rank.user for rank in job.ranks if rank.user != "root"), "")
        said = f"look again as {owner}, or with --sudo" if owner else "look again with --sudo"
        return Advice((said,), (reach.again(job),))
    if timeless and not (job.missing and unreached):
        return Advice(("look again with --for 60: if nothing moves in that time either, it hangs",), ())
    if job.missing and not any(each.cause in _CERTAIN for each in named):
        if unreached:
            said = f"find out why {fold(unreached)} {'does' if len(unreached) == 1 else 'do'} not answer"
            return Advice((said,), (reach.check(unreached),))
        if not named:
            return Advice(("name all hosts of the job, so that its other ranks are seen too",), ())
    if below:
        return Advice(
            ("look below Python, at the devices and the network between them",), (_check(job, reach),)
        )
    return Advice(
        (*_sentences(named, sure), *_without(job, named)),
        tuple(dict.fromkeys(filter(None, _all_commands(job, named, reach, sure)))),
    )


def stacks_for(machines: Sequence[str]) -> Advice:
    """What to do about hosts whose architecture had no py-spy at hand."""
    if not machines:
        return Advice((), ())
    said = f"fetch py-spy for {' and '.join(machines)}, then look again with --pyspy FILE"
    return Advice((said,), tuple(map(fetch, machines)))


def _sentences(named: Sequence[HangCulprit], sure: bool) -> Iterator[str]:
    alike: dict[tuple[Cause, str], list[HangCulprit]] = {}
    for each in named:
        alike.setdefault((each.cause, each.place), []).append(each)
    said = [_sentence(cause, place, of, sure) for (cause, place), of in alike.items()]
    yield from list(dict.fromkeys(filter(None, said)))[:MOST]
    yield from list(dict.fromkeys(map(_of_lock, (each.held for each in named if each.held))))[:MOST]


def _of_lock(held: HeldLock) -> str:
    path = held.path or "the file"
    if held.by_rank:
        return f"release the lock {path} before the collective in which its holder waits"
    if held.holder is not None:
        return f"if nobody needs process {held.holder} any more, end it: it holds the lock {path}"
    return f"look for who holds {path} on the other hosts, if they share it; if nobody does, remove it"


def _all_commands(job: RunningJob, named: Sequence[HangCulprit], reach: Reach, sure: bool) -> Iterator[str]:
    for each in named[:MOST]:
        yield from _commands(each, job, named, reach, sure)


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
    only = _NPU if npu else _NVIDIA if device else _NETWORK
    return reach.check(job.hosts, only)


def _sentence(cause: Cause, place: str, of: Sequence[HangCulprit], sure: bool) -> str:
    ranks = [each.rank for each in of if each.rank is not None]
    one = f"process {of[0].pid}" if of[0].pid is not None else f"the rank on {of[0].host}"
    who = ranks_text(ranks, most=MOST) if ranks else one
    at = f" at {place}" if place else ""
    innocent = "; the network is not the cause" if sure and cause in _OWN else ""
    return {
        Cause.ENDED: f"read the log of {who}, then start the job again",
        Cause.GONE: f"read the log of {who}, then end the job and start it again",
        Cause.STOPPED: f"find out who stopped {who}; the signal CONT resumes a stopped process",
        Cause.FROZEN: f"find out who paused the container or the control group of {who}, and resume it",
        Cause.TRACED: f"leave the debugger that holds {who}",
        Cause.KERNEL: f"look at what keeps {who} in the kernel: storage or a driver",
        Cause.STORAGE: f"look at the file system that keeps {who} waiting{at}",
        Cause.LINK: "look at the network between these hosts",
        Cause.FORK: f"have {who} start its processes by spawn in place of fork, or before its threads"
        f" (tokenizers: TOKENIZERS_PARALLELISM=false){innocent}",
        Cause.LEFT: f"find out why {who} left before the others: fewer batches, an exception, sys.exit"
        f"{innocent}",
        Cause.MISMATCH: "compare the order of collectives on these ranks",
        Cause.LAST: f"look at {who} with more rights",
    }.get(cause, f"look at {who}{at}{innocent}")


def _commands(
    each: HangCulprit, job: RunningJob, named: Sequence[HangCulprit], reach: Reach, sure: bool
) -> Iterable[str]:
    if each.cause is Cause.LINK:
        hosts = dict.fromkeys(other.host for other in named)
        yield reach.check(hosts, _NETWORK)
        return
    lost = next((one for one in job.lost if one.host == each.host), None)
    if each.cause is Cause.GONE and lost:
        boot = "-b -1 " if lost.started is not None else ""
        yield reach.on(each.host, f"journalctl {boot}-n 50 --no-pager")
    if each.pid is None or each.cause is Cause.ENDED:
        return
    if each.cause is Cause.STOPPED and each.key in job.bound:
        yield reach.on(each.host, f"kill -CONT {each.pid}")
    elif each.cause is Cause.MISMATCH:
        return
    elif each.cause is Cause.FROZEN:
        yield reach.on(each.host, f"cat /proc/{each.pid}/cgroup")
    elif each.cause in (Cause.KERNEL, Cause.STORAGE):
        seen = any(rank.b and rank.b.kernel for rank in job.ranks if (rank.host, rank.pid) == each.key)
        unseen = f"sudo cat /proc/{each.pid}/stack"
        yield reach.on(each.host, "journalctl -k -n 50 --no-pager" if seen else unseen)
    elif each.cause is Cause.LAST:
        yield reach.again(job)
    else:
        yield _stack_again(each, job, reach)
        holder = each.held.holder if each.held else None
        own = {(member.host, member.pid) for member in (*job.ranks, *job.helpers)}
        foreign = holder is not None and (each.host, holder) not in own
        if foreign and (end := reach.on(each.host, f"kill {holder}")):
            yield f"{end}    # ends the process that holds the lock"
        if sure and each.cause in _ENDLESS and (end := reach.on(each.host, f"kill -ABRT {each.pid}")):
            yield f"{end}    # ends the job, with an error in its log"


def _stack_again(each: HangCulprit, job: RunningJob, reach: Reach) -> str:
    """How to see whether it is still there. This neither stops the process nor needs it to run."""
    held = next((one.pid for one in job.helpers if each.place and _is_at(one, each)), each.pid)
    typed = reach.on(each.host, f"py-spy dump --nonblocking --pid {held}")
    return f"{typed}    # is it still there?" if typed and each.frames else typed


def _is_at(helper: JobMember, each: HangCulprit) -> bool:
    """Whether the stack of the culprit is that of this helper, for which it waits."""
    same = (helper.host, helper.helps) == each.key
    return same and shown_frames(frames_of(helper.b) or frames_of(helper.a)) == each.frames


def next_time(job: RunningJob, named: Sequence[HangCulprit], *, stacks: bool) -> tuple[str, ...]:
    """Environment variables with which more would have been seen of this hang. Nothing has to be installed.
    `stacks`: whether Python stacks were seen.
    """
    looks = [rank.b for rank in job.ranks]
    differ = any(each.cause is Cause.MISMATCH for each in named)
    own = () if stacks else ("PYTHONFAULTHANDLER=1: then kill -ABRT prints the stack of each thread",)
    if named and not differ and not any(each.cause in (Cause.LAST, Cause.BEHIND) for each in named):
        return own
    if any(map(threads.uses_npu, looks)):
        return (
            *own,
            "TORCH_HCCL_STATUS_SAVE_ENABLE=1 TORCH_HCCL_STATUS_SAVE_PATH=/shared/status",
            "leave HCCL_DFS_CONFIG as it is: its heartbeat names the rank in plog",
        )
    if any(map(threads.uses_device, looks)):
        return (
            *own,
            "TORCH_FR_BUFFER_SIZE=2000 TORCH_NCCL_DUMP_ON_TIMEOUT=1 TORCH_NCCL_DESYNC_DEBUG=1",
            "TORCH_NCCL_DEBUG_INFO_TEMP_FILE=/shared/fr_ TORCH_NCCL_DEBUG_INFO_PIPE_FILE=/tmp/fr_",
        )
    detail = "TORCH_DISTRIBUTED_DEBUG=DETAIL, in one slower run: it names collectives that differ"
    return (*own, *((detail,) if differ else ()))
