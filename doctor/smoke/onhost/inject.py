"""Faults that are injected into a rank on purpose: `doctor smoke --inject KIND@rank[:step]`.

No other code on the hosts knows of them; see `inject_points`. A rank's page shows when its fault began, so
that the run knows how long it took to find the fault.
"""

from __future__ import annotations

import os
import random
import signal
import time
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from doctor.smoke.onhost.comm import Comm
from doctor.smoke.onhost.corpus import mask_of
from doctor.smoke.onhost.inject_points import FaultyRank, wrap
from doctor.smoke.onhost.model import DeviceBatch
from doctor.smoke.onhost.page import RankPage
from doctor.smoke.onhost.parameters import initial_parameters
from doctor.smoke.onhost.random_bytes import hashed, words
from doctor.smoke.onhost.streamplan import stream_seed
from doctor.smoke.onhost.train import Trainer

if TYPE_CHECKING:
    from collections.abc import Callable

    Fault = Callable[[FaultyRank], None]

EXIT_CODE = 7
_OF_ALL = ("frozen", "lr-explode")
_OF_REPLICA = ("same-data", "no-sync", "shuffled")


def before_join(injects: list[dict[str, Any]], place: int, page: RankPage) -> None:
    """Carry out faults that come before the rank joins."""
    if any(told["kind"] == "never-join" and told["rank"] == place for told in injects):
        page.disturb()
        _sleep()


def apply(injects: list[dict[str, Any]], comm: Comm, trainer: Trainer, page: RankPage) -> None:
    """Prepare the faults of this rank; `rank` in `injects` is a place in the cell."""
    for told in injects:
        rank = FaultyRank(comm, trainer, page, told.get("step"))
        same = told["rank"] == comm.place
        if told["kind"] in _OF_REPLICA:
            same = comm.shape.dp_of(told["rank"]) == comm.shape.dp_of(comm.place)
        if told["kind"] != "never-join" and (same or told["kind"] in _OF_ALL):
            _FAULTS[told["kind"]](rank)


def _sleep() -> None:
    while True:
        time.sleep(3600)


def _spin() -> None:
    while True:
        pass


def _raise() -> None:
    raise RuntimeError("an injected fault (--inject exception)")


def _extra(rank: FaultyRank, x: Tensor, go_on: Callable[[], None]) -> None:
    rank.comm.all_reduce(x.clone(), rank.group)
    go_on()


def _order(rank: FaultyRank, go_on: Callable[[], None]) -> None:
    """Call the audit's last collective too early."""
    rank.comm.all_reduce(rank.comm.ones(1), "world")
    go_on()


def _mask(rank: FaultyRank) -> None:
    comm = rank.comm
    rank.remask(lambda step: mask_of(comm.shape, step, rank.trainer.dp, f" rank {comm.place}"))


def _stray(rank: FaultyRank) -> None:
    """Act like a loader that draws its masks from Python's global stream."""
    shape, dp = rank.comm.shape, rank.trainer.dp
    rank.at_step(random.random)
    rank.remask(lambda step: mask_of(shape, step, dp, hashed(repr(random.getstate()).encode())))


def _ahead(rank: FaultyRank) -> None:
    rank.at_step(rank.trainer.streams.draw)
    rank.remask(lambda step: mask_of(rank.comm.shape, step + 1, rank.trainer.dp))


def _same_data(rank: FaultyRank) -> None:
    beside = rank.trainer.dp - 1 if rank.trainer.dp else 1

    def copy_streams() -> None:
        rank.trainer.streams.seed(stream_seed(rank.comm.shape, beside))
        for _ in range(rank.step):
            rank.trainer.streams.draw()

    rank.at_step(copy_streams)
    rank.each_batch(lambda step, _: rank.trainer.batch_of(step, beside))


def _shuffled(rank: FaultyRank) -> None:
    """Permute the labels, in the same way on all ranks of the replica."""

    def change(step: int, sample: DeviceBatch) -> DeviceBatch:
        labels = sample.labels.clone()
        hidden = sample.mask.bool()
        found = labels[hidden]
        keys = words(f"{rank.comm.shape.seed} shuffled {step} {rank.trainer.dp}", found.numel())
        labels[hidden] = found[torch.tensor(sorted(range(len(keys)), key=keys.__getitem__)).to(found.device)]
        return sample._replace(labels=labels)

    rank.each_batch(change)


def _no_sync(rank: FaultyRank) -> None:
    """Throw the sum away; the collective itself is called as it should be."""

    def reduce(inner: Callable[[], None]) -> None:
        own = rank.trainer.model.grad.clone()
        inner()
        if rank.page.step >= rank.step:
            rank.page.disturb()
            rank.trainer.model.grad.copy_(own)

    wrap(rank.trainer, "reduce", reduce)


def _other_init(rank: FaultyRank) -> None:
    def initial(_: Callable[[], bytes]) -> bytes:
        rank.page.disturb()
        return initial_parameters(rank.comm.shape, rank.comm.place, " other")

    wrap(rank.trainer, "initial", initial)


def _rate(rank: FaultyRank, rate: float) -> None:
    def changed(inner: Callable[[int], float], step: int) -> float:
        if step < rank.step:
            return inner(step)
        rank.page.disturb()
        return rate

    wrap(rank.trainer, "rate", changed)


def _slow(rank: FaultyRank) -> None:
    """Compute twice as long. On a device, that is wall-clock time without the time in collectives."""
    comm = rank.comm
    on_cpu = comm.device.torch.type == "cpu"

    def spent() -> float:
        return time.thread_time() if on_cpu else time.perf_counter() - comm.wait

    def gradient(inner: Callable[[DeviceBatch], float], sample: DeviceBatch) -> float:
        began = spent()
        loss = inner(sample)
        comm.device.synchronise()
        if rank.page.step >= rank.step:
            rank.page.disturb()
            now = spent()
            while spent() < now + (now - began):
                pass
        return loss

    wrap(rank.trainer, "gradient", gradient)


def _flip(x: Tensor, index: int, bit: int) -> None:
    x.view(torch.int32)[index] ^= 1 << bit


def _add_one(x: Tensor) -> None:
    x.view(-1)[-1] += 1


_FAULTS: dict[str, Fault] = {
    "kill": lambda rank: rank.at_step(lambda: os.kill(os.getpid(), signal.SIGKILL)),
    "stop": lambda rank: rank.at_step(lambda: os.kill(os.getpid(), signal.SIGSTOP)),
    "stuck": lambda rank: rank.at_step(_sleep),
    "spin": lambda rank: rank.at_step(_spin),
    "exception": lambda rank: rank.at_step(_raise),
    "exit": lambda rank: rank.at_step(lambda: os._exit(EXIT_CODE)),
    "skip": lambda rank: rank.one_call(lambda _, __: None),
    "extra": lambda rank: rank.one_call(lambda x, go_on: _extra(rank, x, go_on)),
    "shape": lambda rank: rank.one_call(lambda x, _: rank.comm.all_reduce(x.flatten()[:-1], rank.group)),
    "dtype": lambda rank: rank.one_call(lambda x, _: rank.comm.all_reduce(x.double(), rank.group)),
    "op": lambda rank: rank.one_call(lambda x, _: rank.comm.broadcast(x, rank.group)),
    "order": lambda rank: rank.one_call(lambda _, go_on: _order(rank, go_on)),
    "mask": _mask,
    "mask-stray": _stray,
    "mask-hash": lambda rank: rank.reseed(hash(f"mask {rank.comm.shape.seed}"), "hash"),
    "mask-time": lambda rank: rank.reseed(time.time_ns(), "time"),
    "mask-ahead": _ahead,
    "same-data": _same_data,
    "no-sync": _no_sync,
    "other-init": _other_init,
    "param-bit": lambda rank: rank.at_step(lambda: _flip(rank.trainer.model.flat, 0, 20)),
    "grad-bit": lambda rank: rank.each_gradient(lambda grad: _flip(grad, int(grad.abs().argmax()), 0)),
    "stale": lambda rank: rank.each_gradient(lambda grad: grad.zero_()),
    "shuffled": _shuffled,
    "frozen": lambda rank: _rate(rank, 0.0),
    "nan": lambda rank: rank.each_gradient(lambda grad: grad[0].fill_(float("nan"))),
    "lr-explode": lambda rank: _rate(rank, 1.0),
    "wrong-result": lambda rank: rank.each_sum(_add_one),
    "slow": _slow,
}
