"""Faults that are injected into a rank on purpose; its page shows when a fault began. See `inject_points`."""

from __future__ import annotations

import math
import os
import random
import signal
import struct
import sys
import time
from array import array
from typing import TYPE_CHECKING, Any

from doctor.smoke.onhost.collectiveplan import BYTES
from doctor.smoke.onhost.comm import Comm
from doctor.smoke.onhost.corpus import TokenBatch, mask_of
from doctor.smoke.onhost.encoding import decoded, encoded
from doctor.smoke.onhost.framework import TokenSample
from doctor.smoke.onhost.inject_points import FaultyRank, wrap
from doctor.smoke.onhost.page import RankPage
from doctor.smoke.onhost.parameters import initial_parameters
from doctor.smoke.onhost.random_bytes import hashed, words
from doctor.smoke.onhost.streamplan import stream_seed
from doctor.smoke.onhost.train import Trainer

if TYPE_CHECKING:
    from collections.abc import Callable

    Fault = Callable[[FaultyRank], None]

EXIT_CODE = 7
NAN = struct.pack("=f", float("nan"))
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
        rank = FaultyRank(comm, trainer, page, told.get("step"), told.get("group", ""))
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


def _extra(rank: FaultyRank, x: Any, go_on: Callable[..., Any]) -> Any:
    go_on(_copy(rank, x))
    return go_on()


def _copy(rank: FaultyRank, x: Any) -> Any:
    framework = rank.comm.framework
    return framework.tensor(framework.bytes_of(x), framework.dtype_of(x))


def _shorter(rank: FaultyRank, x: Any) -> Any:
    return rank.comm.framework.first(_copy(rank, x), rank.comm.framework.size_of(x) - 1)


def _doubled(rank: FaultyRank, x: Any) -> Any:
    numbers = array("d", decoded(rank.comm.framework.bytes_of(x), "float32"))
    return rank.comm.framework.tensor(numbers.tobytes(), "float64")


def _order(rank: FaultyRank, go_on: Callable[..., Any]) -> Any:
    """Call the audit's last collective too early."""
    rank.comm.all_reduce(rank.comm.ones(1), "world")
    return go_on()


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

    framework = rank.comm.framework

    def change(step: int, sample: TokenSample) -> TokenSample:
        tokens, mask, labels = map(framework.bytes_of, sample)
        known = array("q", labels)
        hidden = [index for index, byte in enumerate(mask) if byte]
        keys = words(f"{rank.comm.shape.seed} shuffled {step} {rank.trainer.dp}", len(hidden))
        others = sorted(range(len(keys)), key=keys.__getitem__)
        shuffled = array("q", known)
        for index, other in zip(hidden, others):  # noqa: B905 (Python 3.8)
            shuffled[index] = known[hidden[other]]
        return framework.sample(TokenBatch(tokens, mask, shuffled.tobytes()))

    rank.each_batch(change)


def _undo(rank: FaultyRank, method: str, tensor: str, last: float = math.inf) -> None:
    """Throw away what a method makes of a tensor of the model; the method is called as it should be."""

    def around(inner: Callable[..., None], *step: int) -> None:
        framework, x = rank.comm.framework, getattr(rank.trainer.model, tensor)
        held = framework.bytes_of(x)
        inner(*step)
        if rank.step <= rank.page.step <= last:
            rank.page.disturb()
            framework.write(x, held)

    wrap(rank.trainer, method, around)


def _clear(rank: FaultyRank, x: Any) -> None:
    rank.comm.framework.write(x, bytes(4 * rank.comm.framework.size_of(x)))


def _lost_part(rank: FaultyRank) -> None:
    def reduce(inner: Callable[[], None]) -> None:
        if rank.page.step >= rank.step:
            rank.page.disturb()
            _clear(rank, rank.trainer.model.grad)
        inner()

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

    def gradient(inner: Callable[[TokenSample], float], sample: TokenSample) -> float:
        began = comm.spent()
        loss = inner(sample)
        comm.framework.synchronise()
        if rank.page.step >= rank.step:
            rank.page.disturb()
            now = comm.spent()
            while comm.spent() < now + (now - began):
                pass
        return loss

    wrap(rank.trainer, "gradient", gradient)


def _flip(rank: FaultyRank, x: Any, index: int, bit: int) -> None:
    data = bytearray(rank.comm.framework.bytes_of(x))
    word = int.from_bytes(data[4 * index : 4 * index + 4], sys.byteorder) ^ 1 << bit
    data[4 * index : 4 * index + 4] = word.to_bytes(4, sys.byteorder)
    rank.comm.framework.write(x, bytes(data))


def _flip_largest(rank: FaultyRank, grad: Any) -> None:
    numbers = decoded(rank.comm.framework.bytes_of(grad), "float32")
    _flip(rank, grad, max(range(len(numbers)), key=lambda index: abs(numbers[index])), 0)


def _spoil_last(rank: FaultyRank, x: Any) -> None:
    """Change the last element by one."""
    framework = rank.comm.framework
    data, dtype = framework.bytes_of(x), framework.dtype_of(x)
    last = len(data) - BYTES[dtype]
    (number,) = decoded(data[last:], dtype)
    framework.write(x, data[:last] + encoded([number + (1 if number < 100 else -1)], dtype))


_FAULTS: dict[str, Fault] = {
    "kill": lambda rank: rank.at_step(lambda: os.kill(os.getpid(), signal.SIGKILL)),
    "stop": lambda rank: rank.at_step(lambda: os.kill(os.getpid(), signal.SIGSTOP)),
    "stuck": lambda rank: rank.at_step(_sleep),
    "spin": lambda rank: rank.at_step(_spin),
    "exception": lambda rank: rank.at_step(_raise),
    "exit": lambda rank: rank.at_step(lambda: os._exit(EXIT_CODE)),
    "skip": lambda rank: rank.one_call(lambda _, __: None),
    "extra": lambda rank: rank.one_call(lambda x, go_on: _extra(rank, x, go_on)),
    "shape": lambda rank: rank.one_call(lambda x, go_on: go_on(_shorter(rank, x))),
    "dtype": lambda rank: rank.one_call(lambda x, go_on: go_on(_doubled(rank, x))),
    "op": lambda rank: rank.one_call(lambda x, _: rank.comm.broadcast(x, rank.group)),
    "order": lambda rank: rank.one_call(lambda _, go_on: _order(rank, go_on)),
    "peer": lambda rank: rank.one_call(lambda x, go_on: go_on(x, end=1)),
    "tag": lambda rank: rank.one_call(lambda x, go_on: go_on(x, tag=6)),
    "mask": _mask,
    "mask-stray": _stray,
    "mask-hash": lambda rank: rank.reseed(hash(f"mask {rank.comm.shape.seed}"), "hash"),
    "mask-time": lambda rank: rank.reseed(time.time_ns(), "time"),
    "mask-ahead": _ahead,
    "same-data": _same_data,
    "no-sync": lambda rank: _undo(rank, "reduce", "grad"),
    "lost-part": _lost_part,
    "no-update": lambda rank: _undo(rank, "update", "flat", rank.step),
    "other-init": _other_init,
    "param-bit": lambda rank: rank.at_step(lambda: _flip(rank, rank.trainer.model.flat, 0, 20)),
    "grad-bit": lambda rank: rank.each_gradient(lambda grad: _flip_largest(rank, grad)),
    "stale": lambda rank: rank.each_gradient(lambda grad: _clear(rank, grad)),
    "shuffled": _shuffled,
    "frozen": lambda rank: _rate(rank, 0.0),
    "nan": lambda rank: rank.each_gradient(lambda grad: rank.comm.framework.write(grad, NAN)),
    "lr-explode": lambda rank: _rate(rank, 1.0),
    "wrong-result": lambda rank: rank.each_sum(lambda x: _spoil_last(rank, x)),
    "slow": _slow,
}
