"""Real ranks on this machine that go through some phases of the smoke run and report every mark that they
made.

For tests that need less than `run_ranks`: one phase alone, with `Comm` broken in ways that no injection
offers.
"""

import functools
import json
import os
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from mmap import mmap
from typing import Any

from doctor.smoke.onhost.page import DTYPES, GROUPS, OPS, SIZE, RankPage
from doctor.smoke.onhost.shape import CellShape
from tests.lab.warm import Warm
from tests.support.paths import ROOT
from tests.support.smoke.ranks import WITH_TORCH, load

__all__ = ["load"]
WARM = Warm("tests.support.smoke.marks", **WITH_TORCH)


@dataclass(frozen=True, slots=True)
class Marks:
    """What one rank did: (group, seq, op, dtype, bytes) of each mark on entering, and its events."""

    entered: list[tuple[str, int, str, str, int]]
    events: list[dict[str, Any]]
    marks: int
    """All kinds of marks on its page."""
    seconds: dict[str, float]
    wait: float
    moments: list[float]
    """When it told each event, by the clock of this machine."""


def run_phases(shape: CellShape, *phases: str, breaking: str = "", rank: int = 0) -> list[Marks]:
    """Run the phases on real ranks; `breaking` names a fault of `_FAULTS`, which `rank` gets."""
    told = {"shape": shape, "phases": phases, "breaking": breaking, "rank": rank}
    done = WARM.run([json.dumps(told)], env={**os.environ, **WITH_TORCH}, cwd=ROOT, timeout=120)
    assert done.returncode == 0, done.stderr[-3000:]
    said = [json.loads(line) for line in done.stdout.splitlines()]
    return [
        Marks([tuple(mark) for mark in one.pop("entered")], **one)
        for one in sorted(said, key=lambda one: int(one.pop("rank")))
    ]


class _Recorder(RankPage):
    """A page that remembers what it has shown."""

    def __init__(self) -> None:
        super().__init__(mmap(-1, SIZE), 0)
        self.entered: list[tuple[str, int, str, str, int]] = []
        self.marks = 0

    def enter(
        self, group: str, seq: int, op: str, dtype: str, size: int, end: int = -1, tag: int = 0
    ) -> None:
        super().enter(group, seq, op, dtype, size, end, tag)
        self.entered.append((GROUPS[self.group], self.seq, OPS[self.op], DTYPES[self.dtype], self.bytes))

    def mark(self) -> None:
        super().mark()
        self.marks += 1


def _rank(told: dict[str, Any], place: int, store: str) -> None:
    import torch
    import torch.distributed as dist
    from torch.distributed import FileStore  # type: ignore[attr-defined]

    from doctor.smoke.onhost import bandwidth, collectives
    from doctor.smoke.onhost.comm import Comm, join
    from doctor.smoke.onhost.torch_framework import Torch

    torch.set_num_threads(1)
    fields: list[Any] = [tuple(each) if isinstance(each, list) else each for each in told["shape"]]
    shape = CellShape(*fields)
    framework = Torch()
    framework.store = FileStore(store, shape.world)
    framework.meet(place, shape.world, 60)
    events: list[dict[str, Any]] = []
    moments: list[float] = []

    def say(event: dict[str, Any]) -> None:
        events.append(event)
        moments.append(time.monotonic())

    page, groups = _Recorder(), framework.make_groups(shape, place, 60)
    comm = Comm(shape, place, page, framework, groups, say)
    if told["breaking"] and told["rank"] == place:
        _FAULTS[told["breaking"]](comm)
    phases = {"join": join, "collectives": collectives.run, "bandwidth": bandwidth.run}
    seconds = {}
    for name in told["phases"]:
        began = time.perf_counter()
        phases[name](comm)
        seconds[name] = time.perf_counter() - began
    dist.barrier()
    said = {"entered": page.entered, "events": events, "marks": page.marks, "seconds": seconds}
    said["moments"] = moments
    os.write(1, (json.dumps({"rank": place, "wait": comm.wait, **said}) + "\n").encode())


def _spoil(comm: Any, name: str) -> None:
    """The last element of each result is off by one."""
    right = getattr(comm, name)

    def wrong(x: Any, *more: Any, **named: Any) -> Any:
        got = right(x, *more, **named)
        (x if got is None else got).view(-1)[-1] += 1
        return got

    setattr(comm, name, wrong)


def _swapped(comm: Any) -> None:
    """Rows of an all_gather come in the wrong order."""
    right = comm.all_gather
    comm.all_gather = lambda x, group: right(x, group).flip(0)


def _edge(comm: Any) -> None:
    """What it sends over an edge is off by one."""
    right = comm.swap
    comm.swap = lambda out, into, peer: right(out + 1, into, peer)


def _refused(comm: Any) -> None:
    """The error of a backend that does not support a dtype."""
    right = comm._call

    def call(group: str, op: str, x: Any, do: Any, *about: int) -> None:
        def refuse(*told: Any) -> None:
            do(*told)
            raise RuntimeError("Invalid scalar type")

        right(group, op, x, refuse if str(x.dtype) == "torch.bfloat16" else do, *about)

    comm._call = call


def _crowded(comm: Any) -> None:
    """Memory for a size of 4 KB on two ranks, and not for the next one."""
    comm.framework.free_memory = lambda: 1e5


def _slow(comm: Any) -> None:
    """A link that needs 20 ms for each piece."""
    right = comm.swap

    def swap(*told: Any) -> None:
        time.sleep(0.02)
        right(*told)

    comm.swap = swap


_SPOILT = ("all_reduce", "broadcast", "reduce", "reduce_scatter", "all_gather", "all_to_all")
_FAULTS: dict[str, Callable[[Any], None]] = {
    **{name: functools.partial(_spoil, name=name) for name in _SPOILT},
    "crowded": _crowded,
    "edge": _edge,
    "order": _swapped,
    "refused": _refused,
    "slow": _slow,
}


def main() -> None:
    told = json.loads(sys.argv[1])
    with tempfile.TemporaryDirectory() as folder:
        children = []
        for place in range(CellShape(*told["shape"]).world):
            pid = os.fork()
            if not pid:
                code = 1
                try:
                    _rank(told, place, f"{folder}/store")
                    code = 0
                except BaseException:
                    traceback.print_exc()
                finally:
                    os._exit(code)
            children.append(pid)
        codes = [os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in children]
    sys.exit(max(map(abs, codes)))
