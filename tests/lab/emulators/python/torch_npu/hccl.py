"""The backend `hccl`, over gloo: it refuses the groups and the data types that the product lacks.

As in torch_npu, a group costs nothing until its first collective, which forms the communicator. That call
fails if the group is not allowed. A data type that HCCL lacks is an error of a task in the queue: the call
itself returns, and everything after it fails.
"""

from __future__ import annotations

import json
import os
import socket
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor
from torch._C._distributed_c10d import FakeProcessGroup, FakeWork, PrefixStore, ProcessGroup, Store, Work

from . import errors, products, wavering
from .groups import Place, refusal
from .state import STATE

_REDUCING = {
    "allreduce_": "HcclAllreduce",
    "reduce_": "HcclReduce",
    "_reduce_scatter_base_": "HcclReduceScatter",
}
_MOVING = {
    "broadcast_": "HcclBroadcast",
    "allgather_": "HcclAllgather",
    "_allgather_base_": "HcclAllgather",
    "alltoall_base_": "HcclAlltoAll",
    "send": "HcclSend",
    "recv_": "HcclReceive",
    "barrier": "HcclBarrier",
}
_CHECKED = products.REDUCED | {torch.int16, torch.bfloat16}
"""The data types that torch_npu itself passes on to a reduction, on any product."""


class Communicator:
    """One group of a process."""

    def __init__(self, store: Store, rank: int, size: int, timeout: timedelta) -> None:
        self.store, self.rank, self.size, self.timeout = store, rank, size, timeout
        self._gloo: Any = None

    @property
    def gloo(self) -> Any:
        """The gloo group. The first collective forms it, and all members wait for that."""
        if self._gloo is None:
            STATE.start_hccp()
            self._meet()
            store = PrefixStore("gloo", self.store)
            self._gloo = dist.ProcessGroupGloo(store, self.rank, self.size, self.timeout)
        return self._gloo

    def _meet(self) -> None:
        own = Place(os.environ.get("EMULATED_NPU_SERVER") or socket.gethostname(), STATE.physical)
        self.store.set(str(self.rank), json.dumps(own))
        self.store.wait([str(rank) for rank in range(self.size)], self.timeout)
        members = [Place(*json.loads(self.store.get(str(rank)))) for rank in range(self.size)]
        why = refusal(members, rings=products.product().rings)
        if why:
            # The number is HCCL_E_NOT_SUPPORT. The words are ours: CANN's are unknown.
            raise errors.hccl(STATE.device, STATE.rank, 5, f"The group is not supported: {why}.")

    def reduce(self, name: str, x: Tensor, how: Any, root: int = 0) -> None:
        """Into `x`; gloo does not know 16-bit integers."""
        wide = x.to(torch.int32) if x.dtype == torch.int16 else x
        if name == "allreduce_" and self._wavers(x, how):
            self._sum_in_any_order(x)
            return
        if name == "allreduce_":
            options: Any = dist.AllreduceOptions()
            options.reduceOp = how
            self.gloo.allreduce([wide], options).wait()
        else:
            options = dist.ReduceOptions()
            options.reduceOp, options.rootRank = how, root
            self.gloo.reduce([wide], options).wait()
        if wide is not x:
            x.copy_(wide)

    def _wavers(self, x: Tensor, how: Any) -> bool:
        summed = how == dist.ReduceOp.SUM and x.is_floating_point()
        return summed and not products.product().rings and wavering.wavers(collectives=True)

    def _sum_in_any_order(self, x: Tensor) -> None:
        """Sum in a random order that all members agree on: they all get the same bits, but the next call may
        give others.
        """
        seed = torch.tensor([int.from_bytes(os.urandom(6), "little")])
        self.broadcast(seed, 0)
        addends = [torch.empty_like(x) for _ in range(self.size)]
        self.gather(addends, x)
        x.zero_()
        for index in wavering.any_order(self.size, int(seed)).tolist():
            x.add_(addends[index])

    def broadcast(self, x: Tensor, root: int) -> None:
        options = dist.BroadcastOptions()
        options.rootRank = root
        self.gloo.broadcast([x], options).wait()

    def gather(self, into: list[Tensor], x: Tensor) -> None:
        self.gloo.allgather([into], [x]).wait()

    def scatter_sum(self, part: Tensor, x: Tensor, how: Any) -> None:
        whole = x.clone()
        self.reduce("allreduce_", whole, how)
        part.copy_(whole.reshape(self.size, *part.shape)[self.rank])

    def exchange(self, into: Tensor, x: Tensor, sizes: list[int], own: list[int]) -> None:
        self.gloo.alltoall_base(into, x, sizes, own).wait()


_COMMUNICATORS: dict[int, tuple[Any, Communicator]] = {}


def make_group(store: Store, rank: int, size: int, timeout: timedelta) -> Any:
    """Behind `init_process_group` and `new_group`. torch needs a backend object of its own kind."""
    if STATE.rank < 0:
        STATE.rank = rank
    held = FakeProcessGroup._create_internal(rank, size)
    _COMMUNICATORS[id(held)] = held, Communicator(store, rank, size, timeout)
    return held


def call(func: Any, args: Any, kwargs: Any) -> Any:
    """A collective, as torch's dispatcher passes it."""
    STATE.use_queue()
    name = func._schema.name.partition("::")[2]
    given = {each.name: each.default_value for each in func._schema.arguments if each.has_default_value()}
    given |= dict(zip((each.name for each in func._schema.arguments), args, strict=False)) | kwargs
    held = ProcessGroup.unbox(given["process_group"])._get_backend(torch.device("npu"))
    done = _run(name, given, _COMMUNICATORS[id(held)][1])
    work = Work.boxed(done or FakeWork())
    return work if len(func._schema.returns) == 1 else (args[0], work)


def _run(name: str, given: dict[str, Any], group: Communicator) -> Work | None:
    """It is complete when it returns, except for sending and receiving, which wait for each other."""
    if name == "barrier":
        group.reduce("allreduce_", torch.zeros(1), dist.ReduceOp.SUM)
        return None
    first = next(given[key] for key in ("tensors", "input_tensors", "input_tensor", "input") if key in given)
    x = first.raw if isinstance(first, Tensor) else first[0].raw  # type: ignore[attr-defined]
    gloo = group.gloo
    if not _has_type(name, x.dtype):
        return None
    if name in ("allreduce_", "reduce_"):
        group.reduce(name, x, _operator(given["reduce_op"]), given.get("root_rank", 0))
    elif name == "broadcast_":
        group.broadcast(x, given["root_rank"])
    elif name == "allgather_":
        group.gather([each.raw for each in given["output_tensors"][0]], x)
    elif name == "_allgather_base_":
        group.gather(list(given["output_tensor"].raw.chunk(group.size)), x)
    elif name == "_reduce_scatter_base_":
        group.scatter_sum(given["output_tensor"].raw, x, _operator(given["reduce_op"]))
    elif name == "alltoall_base_":
        sizes = given["output_split_sizes"], given["input_split_sizes"]
        group.exchange(given["output"].raw, x, *sizes)
    elif name == "send":
        return gloo.send([x], given["dst"], given["tag"])  # type: ignore[no-any-return]
    elif name == "recv_":
        return gloo.recv([x], given["src"], given["tag"])  # type: ignore[no-any-return]
    else:
        raise NotImplementedError(f"the emulated hccl has no {name}")
    return None


def _operator(boxed: Any) -> Any:
    """The dispatcher passes the operator as a number."""
    return dist.ReduceOp(dist.ReduceOp.RedOpType(int(boxed.op())))


def _has_type(name: str, dtype: torch.dtype) -> bool:
    """False if HCCL refuses the type in the queue."""
    if name in _REDUCING and dtype not in _CHECKED:
        raise RuntimeError(f"HCCL AllReduce & Reduce: Unsupported data type {dtype}")
    product = products.product()
    task, has = (_REDUCING[name], product.reduced) if name in _REDUCING else (_MOVING[name], product.moved)
    if dtype in has:
        return True
    said = str(dtype).replace("torch.", "").replace("bfloat16", "bfp16")
    reason = "The collective communication operator has an invalid argument. Reason[not supported]"
    STATE.fail_task(
        task, f"In [{task}], value [{said}] for parameter [dataType] is invalid. Reason: {reason}"
    )
    return False
