"""What to do about a hang, and what to set so that the next one explains itself."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from doctor.hang.judge import threads
from doctor.hang.judge.judgement import Cause, Culprit, Job
from doctor.text.nodeset import fold, quoted

MOST = 3
"""Culprits for whom commands are shown."""
_NVIDIA = "ib-port-down,nic-errors,nvlink-down,gpu-xid"
_NPU = "device-link-*,device-unhealthy,device-unreachable"
_NETWORK = "port-unreachable,firewall-blocks,nic-errors,mtu-mismatch"


@dataclass(frozen=True, slots=True)
class Advice:
    sentences: tuple[str, ...]
    commands: tuple[str, ...]


def advice(job: Job, named: Sequence[Culprit], decided: bool, below: bool) -> Advice:
    if below:
        return Advice(("look below Python, at the devices and the network between them",), (_check(job),))
    if not named:
        return Advice((), ())
    sentences = dict.fromkeys(filter(None, (_sentence(each) for each in named[:MOST])))
    commands = dict.fromkeys(command for each in named[:MOST] for command in _commands(each, named))
    if not decided:
        sentences = (
            dict.fromkeys([*sentences, "compare the order of collectives on these ranks"])
            if any(each.cause is Cause.MISMATCH for each in named)
            else sentences
        )
    return Advice(tuple(sentences), tuple(commands))


def _check(job: Job) -> str:
    npu = any(threads.uses_npu(rank.b) for rank in job.ranks)
    device = any(threads.uses_device(rank.b) for rank in job.ranks)
    only = _NPU if npu else _NVIDIA if device else _NETWORK
    return f"doctor check {quoted(job.hosts)} --only {shlex.quote(only)}"


def _sentence(each: Culprit) -> str:
    at = f" at {each.place}" if each.place else ""
    who = f"rank {each.rank}" if each.rank is not None else f"process {each.pid}"
    return {
        Cause.ENDED: f"read the log of {who}, then start the job again",
        Cause.GONE: f"read the log of {who}, then start the job again",
        Cause.STOPPED: f"find out who stopped {who}; it goes on after the signal CONT",
        Cause.TRACED: f"leave the debugger that holds {who}",
        Cause.KERNEL: f"look at what {who} waits for in the kernel: storage or a driver",
        Cause.STORAGE: f"look at the file system that {who} reads or writes{at}",
        Cause.LINK: "look at the network between these hosts",
        Cause.MISMATCH: "",
        Cause.LAST: f"look at {who} with more rights",
    }.get(each.cause, f"look at {who}{at}; the network is not the cause")


def _commands(each: Culprit, named: Sequence[Culprit]) -> Iterable[str]:
    if each.cause is Cause.LINK:
        hosts = dict.fromkeys(other.host for other in named)
        yield f"doctor check {quoted(hosts)} --only {_NETWORK}"
        return
    if each.pid is None or each.cause is Cause.ENDED:
        return
    if each.cause is Cause.STOPPED:
        yield f"ssh {_host(each)} kill -CONT {each.pid}"
    elif each.cause is Cause.MISMATCH:
        return
    elif each.cause in (Cause.KERNEL, Cause.STORAGE):
        yield f"ssh {_host(each)} sudo cat /proc/{each.pid}/stack"
    else:
        yield f"ssh {_host(each)} ps -o pid,stat,wchan:24,args -p {each.pid}"


def _host(each: Culprit) -> str:
    return shlex.quote(fold((each.host,)))


def next_time(job: Job) -> tuple[str, ...]:
    """Variables for the job's environment; nothing has to be installed."""
    looks = [rank.b for rank in job.ranks]
    if any(map(threads.uses_npu, looks)):
        return (
            "PYTHONFAULTHANDLER=1 TORCH_HCCL_STATUS_SAVE_ENABLE=1 TORCH_HCCL_STATUS_SAVE_PATH=/shared/status",
            "leave HCCL_DFS_CONFIG as it is: its heartbeat names the rank in plog",
        )
    return (
        (
            "PYTHONFAULTHANDLER=1 TORCH_FR_BUFFER_SIZE=2000 TORCH_NCCL_DUMP_ON_TIMEOUT=1",
            "TORCH_NCCL_DEBUG_INFO_TEMP_FILE=/shared/fr_ TORCH_NCCL_DEBUG_INFO_PIPE_FILE=/tmp/fr_",
            "TORCH_NCCL_DESYNC_DEBUG=1",
        )
        if any(map(threads.uses_device, looks))
        else ("PYTHONFAULTHANDLER=1 TORCH_DISTRIBUTED_DEBUG=DETAIL TORCH_FR_BUFFER_SIZE=2000",)
    )
