"""Collectives by size, in an acceptance test: from 1 KB as far as time and memory allow."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from statistics import median
from typing import Any

from doctor.smoke.onhost.collectives import refuses
from doctor.smoke.onhost.comm import Comm
from doctor.smoke.onhost.encoding import decoded, encoded
from doctor.smoke.onhost.sweepplan import SIZES, WARM_UP, SweepPace, scopes, timed

COPIES = 8
"""A size fits if so many times of it are free for each rank of the host: input, output, copies, others."""


def run(comm: Comm) -> None:
    named, ops = scopes(comm.shape), timed(comm.shape.backend)
    for scope, group in named.items():
        for op in ops if comm.size(group) > 1 else ():
            pace = SweepPace(comm.shape.sweep / len(named) / len(ops))
            comm.converse(comm.ones(SIZES[0] // 4), partial(_time, comm, scope, group, op, pace), group, op)


def _time(comm: Comm, scope: str, group: str, op: str, pace: SweepPace) -> None:
    """The slowest member of each call counts. The first member tells."""
    members, framework = comm.shape.members(group, comm.place), comm.framework
    copies = COPIES * comm.shape.hosts[comm.shape.host_of(comm.place)]

    def largest(values: list[float]) -> list[float]:
        x = framework.tensor(encoded(values, "float32"), "float32")
        framework.all_reduce(x, comm.groups[group], maximum=True)
        return [float(value) for value in decoded(framework.bytes_of(x), "float32")]

    largest([0.0])  # nobody is late for the first call
    while not pace.done:
        size, call, calls = pace.size, _call(comm, members, group, op, pace.size), []
        for _ in range(WARM_UP + pace.times):
            began = time.perf_counter()
            try:
                call()
            except (RuntimeError, TypeError, ValueError) as error:
                if refuses(error) and framework.on_cpu:
                    return  # all members get the same refusal
                raise
            framework.synchronise()
            calls.append(time.perf_counter() - began)
            comm.page.mark()
        del call
        *calls, full = largest([*calls, float(copies * 4 * size > framework.free_memory())])
        counted = pace.took(calls)
        pace.done = pace.done or bool(full)
        if counted and comm.place == members[0]:
            spent = min(counted), median(counted), max(counted)
            about = {"scope": scope, "op": op, "bytes": size, "ranks": len(members), "calls": len(counted)}
            comm.say({"ev": "sweep", **about, "seconds": spent})


def _call(comm: Comm, members: list[int], group: str, op: str, size: int) -> Callable[[], Any]:
    """A call on buffers that are made once."""
    do, handle, count = comm.framework, comm.groups[group], len(members)
    each, place = -(-size // 4 // count), members.index(comm.place)
    after, before = members[(place + 1) % count], members[place - 1]
    whole, even = do.zeros(each * count), [each] * count
    other = do.zeros(each * (count if op in ("all_to_all", "send_recv") else 1))
    calls: dict[str, Callable[[], Any]] = {
        "all_reduce": lambda: do.all_reduce(whole, handle, maximum=False),
        "all_gather": lambda: do.all_gather(other, handle, count, whole),
        "reduce_scatter": lambda: do.reduce_scatter(whole, handle, count, other),
        "broadcast": lambda: do.broadcast(whole, handle, members[0]),
        "all_to_all": lambda: do.all_to_all(whole, handle, even, even, other),
        "send_recv": lambda: do.swap(whole, other, after, handle, before),
    }
    return calls[op]
