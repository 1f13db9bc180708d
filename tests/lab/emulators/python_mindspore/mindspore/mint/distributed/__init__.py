"""The collectives that MCCL has. A group must be named: the default is that of Ascend."""

from __future__ import annotations

from itertools import count
from threading import Timer
from typing import Any

import torch.distributed as dist

from mindspore import Tensor
from mindspore.communication import CLUSTER, GROUPS, WORLD

from . import distributed

__all__ = ["distributed"]

LATE = 0.03
"""Seconds until a thread confirms a message, when its rank may already have left the collective."""
_numbers = count()


def all_reduce(x: Tensor, *, op: str, group: str) -> None:
    if x.dtype in ("float64", "uint8", "bool"):
        raise RuntimeError("AllReduce failed.")
    ops = {"sum": dist.ReduceOp.SUM, "max": dist.ReduceOp.MAX}
    if x.dtype != "int16":
        dist.all_reduce(x.plain, ops[op], group=GROUPS[group])
        if group == WORLD and x.numel() == 1:
            _await_confirmations()
        return
    wide = x.plain.int()  # gloo adds up no 16-bit integers
    dist.all_reduce(wide, ops[op], group=GROUPS[group])
    x.plain.copy_(wide)


def _await_confirmations() -> None:
    """Rank 0 sends a small sum to the others, and stays until each has confirmed it, as in MCCL."""
    number, (store,) = next(_numbers), CLUSTER
    names = [f"confirmed {number} {rank}" for rank in range(1, dist.get_world_size())]
    if dist.get_rank():
        Timer(LATE, store.set, (names[dist.get_rank() - 1], "")).start()
    else:
        store.wait(names)


def broadcast(x: Tensor, source: int, *, group: str) -> None:
    dist.broadcast(x.plain, source, group=GROUPS[group])


def all_gather(rows: list[Tensor], x: Tensor, *, group: str) -> None:
    dist.all_gather([row.plain for row in rows], x.plain, group=GROUPS[group])


def isend(x: Tensor, peer: int, *, group: str) -> Any:
    return dist.isend(x.plain, peer, group=GROUPS[group])


def irecv(x: Tensor, peer: int, *, group: str) -> Any:
    return dist.irecv(x.plain, peer, group=GROUPS[group])


def reduce(*_: Any, **__: Any) -> None:
    raise RuntimeError("The kernel DistCommReduce unregistered.")


def reduce_scatter_tensor(*_: Any, **__: Any) -> None:
    raise RuntimeError("The kernel DistCommReduceScatter unregistered.")


def all_to_all_single(*_: Any, **__: Any) -> None:
    raise RuntimeError("The kernel DistCommAllToAllVSingle unregistered.")
