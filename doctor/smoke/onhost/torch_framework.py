"""Torch as the smoke run uses it, on the CPU; `devices` has what differs on other devices."""

from __future__ import annotations

import ctypes
from contextlib import suppress
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import torch
import torch.distributed as dist
from torch import Tensor
from torch.distributed import PrefixStore, TCPStore  # type: ignore[attr-defined]

from doctor.smoke.onhost.framework import Framework
from doctor.smoke.onhost.random_bytes import drawn
from doctor.smoke.onhost.torch_model import Model

if TYPE_CHECKING:  # Python 3.8 cannot evaluate these
    from collections.abc import Callable

    from doctor.smoke.onhost.comm import Comm
    from doctor.smoke.onhost.framework import Sums
    from doctor.smoke.onhost.shape import CellShape


class Torch(Framework):
    name = "torch"
    backend = "gloo"

    def __init__(self, number: int = 0) -> None:
        self.number = number
        self.signs: dict[int, Tensor] = {}
        self.sent: list[tuple[Any, Tensor]] = []

    # What it is.

    @property
    def device(self) -> torch.device:
        return torch.device("cpu")

    def set_up(self) -> None:
        torch.set_num_threads(1)

    def share_memory(self) -> None:
        torch.empty(1 << 20, dtype=torch.uint8).share_memory_()  # type: ignore[no-untyped-call]

    def versions(self) -> dict[str, str]:
        return {"torch": str(torch.__version__)}

    def instructions(self) -> str:
        return str(torch.backends.cpu.get_cpu_capability())

    # Meeting the other ranks.

    store: Any

    def reach(self, address: str, port: int, cell: int, timeout: float) -> None:
        self.store = PrefixStore(f"cell{cell}", TCPStore(address, port, timeout=timedelta(seconds=timeout)))

    def meet(self, place: int, world: int, timeout: float) -> None:
        dist.init_process_group(
            self.backend, store=self.store, rank=place, world_size=world, timeout=self.limit(timeout)
        )

    def limit(self, timeout: float) -> timedelta:
        """The limit of a group: the backend's own limits come first."""
        return timedelta(seconds=timeout)

    def make_groups(self, shape: CellShape, place: int, timeout: float) -> dict[str, Any]:
        groups: dict[str, Any] = dict.fromkeys(shape.groups)
        groups["world"] = dist.group.WORLD if shape.world > 1 else None
        for name in shape.groups[1:]:
            for members in dict.fromkeys(tuple(shape.members(name, rank)) for rank in range(shape.world)):
                if len(members) > 1:
                    # Without a timeout of its own, a new group has torch's: half an hour.
                    made = dist.new_group(list(members), self.limit(timeout), self.backend)
                    if place in members:
                        groups[name] = made
        return groups

    # Collectives.

    def all_reduce(self, x: Tensor, group: Any, *, maximum: bool) -> None:
        dist.all_reduce(x, dist.ReduceOp.MAX if maximum else dist.ReduceOp.SUM, group=group)

    def broadcast(self, x: Tensor, group: Any, source: int) -> None:
        dist.broadcast(x, source, group=group)

    def reduce(self, x: Tensor, group: Any, root: int) -> None:
        dist.reduce(x, root, group=group)

    def all_gather(self, x: Tensor, group: Any, members: int, into: Tensor | None = None) -> Tensor:
        if into is not None:
            dist.all_gather_into_tensor(into, x, group=group)
            return into
        rows = x.unsqueeze(0).repeat(members, *[1] * x.dim())
        dist.all_gather(list(rows), x, group=group)
        return rows

    def reduce_scatter(self, x: Tensor, group: Any, members: int, into: Tensor | None = None) -> Tensor:
        part = x[: x.shape[0] // members].clone() if into is None else into
        dist.reduce_scatter_tensor(part, x, group=group)
        return part

    def all_to_all(self, x: Tensor, group: Any, out: list[int], back: list[int], into: Any = None) -> Any:
        result = x.new_zeros(sum(back)) if into is None else into
        even = len({*out, *back}) == 1
        dist.all_to_all_single(result, x, None if even else back, None if even else out, group=group)
        return result

    def swap(self, out: Any, into: Any, peer: int, group: Any = None, source: int = -1, tag: int = 0) -> None:
        both = (dist.isend, out, peer), (dist.irecv, into, peer if source < 0 else source)
        turns = [dist.P2POp(do, x, end, group, tag) for do, x, end in both if x is not None]
        for work in dist.batch_isend_irecv(turns):
            work.wait()

    def pass_on(self, kept: int, tag: int, out: Any, into: Any, peer: int, group: Any) -> None:
        if out is None:
            dist.irecv(into, peer, group, tag).wait()  # type: ignore[union-attr]
            return
        self.sent.append((dist.isend(out, peer, group, tag), out))
        for work, _ in self.sent[:-kept]:
            work.wait()
        del self.sent[:-kept]

    # Numbers.

    def tensor(self, data: bytes | bytearray, dtype: str) -> Tensor:
        return _tensor(data, getattr(torch, dtype)).to(self.device)

    def zeros(self, elements: int) -> Tensor:
        return torch.zeros(elements, dtype=torch.float32, device=self.device)

    def bytes_of(self, x: Tensor) -> bytes:
        """Without numpy, which torch does not need."""
        x = x.detach().cpu().contiguous()
        return ctypes.string_at(x.data_ptr(), x.numel() * x.element_size())

    def copies(self, data: bytes) -> tuple[Callable[[], object], Callable[[], object]]:
        there = self.tensor(data, "uint8")
        here = there.cpu()
        with suppress(RuntimeError):  # without pinned memory the host's own copying is measured, too
            here = here.pin_memory()
        return lambda: there.copy_(here, non_blocking=True), lambda: here.copy_(there, non_blocking=True)

    def write(self, x: Tensor, data: bytes) -> None:
        new = _tensor(data, torch.uint8).to(self.device)
        with torch.no_grad():
            x.data.flatten().view(torch.uint8)[: len(data)].copy_(new)

    def dtype_of(self, x: Tensor) -> str:
        return str(x.dtype).replace("torch.", "")

    def size_of(self, x: Tensor) -> int:
        return x.numel()

    def first(self, x: Tensor, elements: int) -> Tensor:
        return x[:elements]

    # Computing.

    def products(self, left: bytes, right: bytes, size: int) -> tuple[bytes, bytes]:
        a, b = (self.tensor(data, "float32").view(size, size) for data in (left, right))
        return self.bytes_of(a @ b), self.bytes_of(a.view(4, -1, size) @ b)

    def square(self, x: Tensor, side: int) -> Tensor:
        return x.view(side, side) @ x.view(side, side)

    def projection(self, x: Tensor) -> Sums:
        count = x.numel()
        if count not in self.signs:
            self.signs[count] = (_tensor(drawn("signs", count), torch.uint8) & 1).double() * 2 - 1
        numbers = x.detach().cpu().double()
        return float((numbers * self.signs[count]).sum()), float(numbers.abs().sum())

    def tally(self, x: Tensor, sums: bool) -> tuple[int, float, float]:
        x = x.detach().flatten()
        even = (
            0 == x.nbytes % 8 == x.storage_offset() * x.element_size() % 8
        )  # half as many are twice as fast
        bits = int(x.view(torch.int64 if even else torch.int32).sum())
        return (bits, float(x.sum(dtype=torch.float64)), float(x.abs().sum())) if sums else (bits, 0.0, 0.0)

    def model(self, comm: Comm) -> Model:
        return Model(comm, self.device)

    # Random numbers.

    def seed(self, seed: int) -> None:
        torch.manual_seed(seed)

    def draw(self, count: int) -> dict[str, bytes]:
        return {
            "torch": self.bytes_of(torch.rand(count, dtype=torch.float32, device="cpu")),
            **self.draw_many(count),
        }


def _tensor(data: bytes | bytearray, dtype: torch.dtype) -> Tensor:
    own = data if isinstance(data, bytearray) else bytearray(data)
    return torch.frombuffer(own, dtype=dtype) if data else torch.zeros(0, dtype=dtype)
