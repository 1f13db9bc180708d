"""The only way to call a collective: each one is marked on the rank's page before and after.

Nothing here knows what the collectives are for. All of them go through `Comm._call`, which injected faults
replace.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import torch
import torch.distributed as dist
from torch import Tensor

from doctor.smoke.onhost.devices import Device
from doctor.smoke.onhost.page import RankPage
from doctor.smoke.onhost.schedule import join_calls
from doctor.smoke.onhost.shape import CellShape

if TYPE_CHECKING:  # Python 3.8 cannot evaluate these
    from collections.abc import Callable

    Say = Callable[[dict[str, Any]], None]
    Groups = dict[str, dist.ProcessGroup | None]


def make_groups(shape: CellShape, place: int, timeout: float, device: Device) -> Groups:
    """The groups of a rank; None for one in which it would be alone. Call this on all ranks at once."""
    groups: Groups = dict.fromkeys(shape.groups)
    groups["world"] = dist.group.WORLD if shape.world > 1 else None
    limit = device.init_kwargs(timeout)["timeout"]
    for name in shape.groups[1:]:
        for members in dict.fromkeys(tuple(shape.members(name, rank)) for rank in range(shape.world)):
            if len(members) > 1:
                # Without a timeout of its own, a new group has torch's: half an hour.
                made = dist.new_group(list(members), limit, device.backend)
                if place in members:
                    groups[name] = made
    return groups


def join(comm: Comm) -> None:
    """Use every group once, so that connections that are made on first use exist."""
    for call in join_calls(comm.shape):
        comm.all_reduce(comm.ones(1), call.group)


class Comm:
    """The collectives of one rank. In a group of one member they do nothing and leave no mark.

    `wait` is the time spent inside them so far. Roots and sources are indexes in their group, peers are
    places in the cell.
    """

    def __init__(
        self, shape: CellShape, place: int, page: RankPage, device: Device, groups: Groups, say: Say
    ) -> None:
        self.shape = shape
        self.place = place
        self.page = page
        self.device = device
        self.groups = groups
        self.say = say
        self.wait = 0.0
        self.seq: dict[str, int] = {}

    def ones(self, elements: int) -> Tensor:
        return torch.ones(elements, dtype=torch.float32, device=self.device.torch)

    def size(self, group: str) -> int:
        return len(self.shape.members(group, self.place))

    def all_reduce(self, x: Tensor, group: str, *, maximum: bool = False) -> None:
        kind = dist.ReduceOp.MAX if maximum else dist.ReduceOp.SUM
        op = "all_reduce_max" if maximum else "all_reduce"
        self._call(group, op, x, lambda: dist.all_reduce(x, kind, group=self.groups[group]))

    def broadcast(self, x: Tensor, group: str, source: int = 0) -> None:
        member = self.shape.members(group, self.place)[source]
        self._call(group, "broadcast", x, lambda: dist.broadcast(x, member, group=self.groups[group]))

    def reduce(self, x: Tensor, group: str, root: int = 0) -> None:
        """Only the root gets the sum; what the others hold afterwards is undefined."""
        member = self.shape.members(group, self.place)[root]
        self._call(group, "reduce", x, lambda: dist.reduce(x, member, group=self.groups[group]))

    def all_gather(self, x: Tensor, group: str) -> Tensor:
        """One row for each member, in the group's order."""
        rows = x.unsqueeze(0).repeat(self.size(group), *[1] * x.dim())
        self._call(group, "all_gather", x, lambda: dist.all_gather(list(rows), x, group=self.groups[group]))
        return rows

    def reduce_scatter(self, x: Tensor, group: str) -> Tensor:
        """The rank's own part of the sum; the first dimension is cut into as many parts as members."""
        part = x[: x.shape[0] // self.size(group)].clone()
        self._call(
            group, "reduce_scatter", x, lambda: dist.reduce_scatter_tensor(part, x, group=self.groups[group])
        )
        return part

    def all_to_all(self, x: Tensor, group: str) -> Tensor:
        """Part i of the result is the part that member i had for this rank."""
        result = x.clone()
        self._call(
            group, "all_to_all", x, lambda: dist.all_to_all_single(result, x, group=self.groups[group])
        )
        return result

    def converse(self, first: Tensor, do: Callable[[], None]) -> None:
        """Run many swaps with one peer under one mark, which shows the first tensor that is sent."""
        self._call("pair", "exchange", first, do)

    def swap(self, out: Tensor, into: Tensor, peer: int) -> None:
        """Send and receive at the same time, inside `converse` and without a mark of its own."""
        turns = [dist.P2POp(dist.isend, out, peer), dist.P2POp(dist.irecv, into, peer)]
        for work in dist.batch_isend_irecv(turns):
            work.wait()
        self.device.synchronise()

    def _call(self, group: str, op: str, x: Tensor, do: Callable[[], Any]) -> None:
        if group != "pair" and self.size(group) == 1:
            return
        self.seq[group] = self.seq.get(group, 0) + 1
        dtype = str(x.dtype).replace("torch.", "")
        self.device.synchronise()  # time for pending computation does not count as waiting
        self.page.enter(group, self.seq[group], op, dtype, x.numel() * x.element_size())
        began = time.perf_counter()
        do()
        self.device.synchronise()
        self.wait += time.perf_counter() - began
        self.page.leave()
