"""MindSpore as the smoke run uses it: tensors, groups, collectives and random numbers, in PyNative mode.

Without Ascend the collectives are those of MCCL over TCP, which has only some of them (`collectiveplan`).
"""

from __future__ import annotations

import contextlib
import importlib
import os
import tempfile
import time
from typing import TYPE_CHECKING, Any

import mindspore
import numpy
from mindspore import Tensor, communication, mint, ops
from mindspore.mint import distributed as dist

from doctor.smoke.onhost.collectiveplan import BYTES
from doctor.smoke.onhost.framework import Framework
from doctor.smoke.onhost.hccl import hccl_environment
from doctor.smoke.onhost.mindspore_model import Model
from doctor.smoke.onhost.mindspore_side import cluster
from doctor.smoke.onhost.random_bytes import drawn

if TYPE_CHECKING:  # Python 3.8 cannot evaluate these
    from doctor.smoke.onhost.comm import Comm
    from doctor.smoke.onhost.framework import Sums
    from doctor.smoke.onhost.shape import CellShape

WORLD = {"mccl": "mccl_world_group", "hccl": "hccl_world_group"}
SHARED = 1 << 20


def framework_of(backend: str, local: int, number: int | None) -> Framework:
    return MindSpore(backend, local if number is None else number)


class MindSpore(Framework):
    name = "mindspore"

    def __init__(self, backend: str, number: int) -> None:
        self.backend = backend
        self.number = number
        self.on_cpu = backend == "mccl"
        self.world = WORLD[backend]
        self.signs: dict[int, Any] = {}

    # What it is.

    def environment(self, timeout: float) -> dict[str, str]:
        return {} if self.on_cpu else {**hccl_environment(timeout), "DEVICE_ID": str(self.number)}

    @property
    def product(self) -> str:
        return super().product if self.on_cpu else str(mindspore.hal.get_device_name(0))

    def choose_core(self, place: int) -> None:
        """One core: on several, its threads spin for each other several times as long as they compute."""
        if self.on_cpu:
            cores = sorted(os.sched_getaffinity(0))
            with contextlib.suppress(OSError):  # a sandbox may forbid it
                os.sched_setaffinity(0, {cores[place % len(cores)]})

    def set_up(self) -> None:
        mindspore.set_context(mode=mindspore.PYNATIVE_MODE)
        target = "CPU" if self.on_cpu else "Ascend"
        mindspore.set_device(target, *([] if self.on_cpu else [self.number]))
        if mindspore.get_context("device_target") != target:
            raise RuntimeError(f"this MindSpore sees no {target} device: was CANN's set_env.sh sourced?")

    def be_deterministic(self) -> None:
        if not self.on_cpu:
            mindspore.set_deterministic(True)

    def share_memory(self) -> None:
        """In a file that has no name, as the queues of `mindspore.dataset` do in one that has one."""
        with tempfile.TemporaryFile(dir="/dev/shm") as file:
            os.posix_fallocate(file.fileno(), 0, SHARED)

    def versions(self) -> dict[str, str]:
        return {"mindspore": str(mindspore.__version__)}

    # Meeting the other ranks.

    def reach(self, address: str, port: int, cell: int, timeout: float) -> None:  # noqa: ARG002
        self.scheduler = address, port

    def meet(self, place: int, world: int, timeout: float) -> None:
        if world == 1:
            return
        os.environ.update(cluster(*self.scheduler, world, timeout))
        os.environ.update(
            MS_ROLE="MS_WORKER", MS_NODE_ID=str(place), RANK_ID=str(place), RANK_SIZE=str(world)
        )
        communication.init()
        # Sending looks up the members of the group that is the default on Ascend, whatever group it is given.
        known = getattr(
            importlib.import_module("mindspore.mint.distributed.distributed"), "_GROUP_RANK_CACHE", {}
        )
        known.setdefault(WORLD["hccl"], list(range(world)))

    def make_groups(self, shape: CellShape, place: int, timeout: float) -> dict[str, Any]:  # noqa: ARG002
        """Only members may create a group: for others, the groups after it would hang."""
        groups: dict[str, Any] = dict.fromkeys(shape.groups)
        groups["world"] = self.world if shape.world > 1 else None
        for name in shape.groups[1:]:
            members = shape.members(name, place)
            if len(members) == shape.world > 1:
                groups[name] = self.world
            elif len(members) > 1:
                groups[name] = f"{name}_{members[0]}"
                communication.create_group(groups[name], members)
        return groups

    # Collectives. On the CPU an operation has ended once its result was read.

    def synchronise(self) -> None:
        if not self.on_cpu:
            mindspore.runtime.synchronize()

    def all_reduce(self, x: Any, group: Any, *, maximum: bool) -> None:
        dist.all_reduce(x, op="max" if maximum else "sum", group=group)
        self._finish(x)

    def broadcast(self, x: Any, group: Any, source: int) -> None:
        dist.broadcast(x, source, group=group)
        self._finish(x)

    def reduce(self, x: Any, group: Any, root: int) -> None:
        dist.reduce(x, root, group=group)
        self._finish(x)

    def all_gather(self, x: Any, group: Any, members: int, into: Any = None) -> Any:  # noqa: ARG002
        rows = [self._copy(x) for _ in range(members)]
        dist.all_gather(rows, x, group=group)
        for row in rows:
            self._finish(row)
        return rows

    def reduce_scatter(self, x: Any, group: Any, members: int, into: Any = None) -> Any:
        part = self.first(x, x.size // members) if into is None else into
        dist.reduce_scatter_tensor(part, x, group=group)
        self._finish(part)
        return part

    def all_to_all(self, x: Any, group: Any, out: list[int], back: list[int], into: Any = None) -> Any:
        result = into
        if into is None:
            result = self.tensor(bytes(sum(back) * BYTES[self.dtype_of(x)]), self.dtype_of(x))
        even = len({*out, *back}) == 1
        dist.all_to_all_single(result, x, None if even else back, None if even else out, group=group)
        self._finish(result)
        return result

    def swap(self, out: Any, into: Any, peer: int, group: Any = None, source: int = -1, tag: int = 0) -> None:  # noqa: ARG002
        group, source = group or self.world, peer if source < 0 else source
        for work in [dist.isend(out, peer, group=group), dist.irecv(into, source, group=group)]:
            if work is not None:
                work.wait()
        self._finish(into)

    def pass_on(self, *_: Any) -> None:
        raise NotImplementedError("an interleaved pipeline needs torch")

    def _finish(self, x: Any) -> None:
        if self.on_cpu:
            x.asnumpy()

    # Numbers.

    def tensor(self, data: bytes | bytearray, dtype: str) -> Any:
        if dtype == "bfloat16":
            halves = numpy.frombuffer(data, numpy.uint16).astype(numpy.uint32) << 16
            return Tensor(halves.view(numpy.float32)).astype(mindspore.bfloat16)
        return Tensor(numpy.frombuffer(data, dtype).copy())

    def bytes_of(self, x: Any) -> bytes:
        if isinstance(x, list):
            return b"".join(map(self.bytes_of, x))
        if x.dtype == mindspore.bfloat16:
            words = x.astype(mindspore.float32).asnumpy().view(numpy.uint32)
            return bytes((words >> 16).astype(numpy.uint16).tobytes())
        return bytes(x.asnumpy().tobytes())

    def write(self, x: Any, data: bytes) -> None:
        x.assign_value(self.tensor(data + self.bytes_of(x)[len(data) :], self.dtype_of(x)).reshape(x.shape))

    def dtype_of(self, x: Any) -> str:
        return str(x.dtype).lower()

    def size_of(self, x: Any) -> int:
        return int(x.size)

    def first(self, x: Any, elements: int) -> Any:
        return self.tensor(self.bytes_of(x)[: elements * x.itemsize], self.dtype_of(x))

    def _copy(self, x: Any) -> Any:
        """A flat copy: what is received into a reshaped tensor does not arrive."""
        return self.tensor(self.bytes_of(x), self.dtype_of(x))

    # Computing.

    def burnt(self) -> float:
        """Threads of MindSpore compute."""
        return time.process_time()

    def products(self, left: bytes, right: bytes, size: int) -> tuple[bytes, bytes]:
        a, b = (self.tensor(data, "float32").reshape(size, size) for data in (left, right))
        return self.bytes_of(mint.matmul(a, b)), self.bytes_of(mint.matmul(a.reshape(4, -1, size), b))

    def square(self, x: Any, side: int) -> Any:
        return mint.matmul(x.reshape(side, side), x.reshape(side, side)).asnumpy()

    def projection(self, x: Any) -> Sums:
        count = int(x.size)
        if count not in self.signs:
            self.signs[count] = (numpy.frombuffer(drawn("signs", count), numpy.uint8) & 1) * 2.0 - 1.0
        numbers = x.asnumpy().astype(numpy.float64).ravel()
        return float((numbers * self.signs[count]).sum()), float(numpy.abs(numbers).sum())

    def model(self, comm: Comm) -> Model:
        return Model(comm, self.tensor)

    # Random numbers. On the CPU the state of the default generator never moves: what was drawn is compared.

    def seed(self, seed: int) -> None:
        mindspore.set_seed(seed)
        mindspore.manual_seed(seed)

    def draw(self, count: int) -> dict[str, bytes]:
        ones = self.tensor(numpy.ones(count, numpy.float32).tobytes(), "float32")
        kept = ops.dropout(ones, p=0.5, training=True).asnumpy() != 0
        return {
            "mindspore": self.bytes_of(ops.rand(count)),
            "mindspore-dropout": numpy.packbits(kept).tobytes(),
            **self.draw_many(count),
        }

    def draw_many(self, count: int) -> dict[str, bytes]:
        return {} if self.on_cpu else {"device": self.bytes_of(mint.rand(count))}
