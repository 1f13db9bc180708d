"""Results that a device computes differently each time: sums in a random order. Only on request.
EMULATED_NPU_WAVERS is "default" for devices that waver until determinism is switched on, as CANN's
aclnnMatmul and aclnnEmbeddingDenseBackward and HCCL's reductions do, or "always" for those that go on.
"""

from __future__ import annotations

import os
import random
from typing import Any

import torch
from torch import Tensor

_CHANCE = random.SystemRandom()


def wavers(*, collectives: bool = False) -> bool:
    """torch_npu passes torch's switch on to HCCL, which also has a switch of its own."""
    how = os.environ.get("EMULATED_NPU_WAVERS", "")
    switched = torch.are_deterministic_algorithms_enabled()
    if collectives:
        switched = switched or os.environ.get("HCCL_DETERMINISTIC", "false").lower() in ("true", "strict")
    return how == "always" or (how == "default" and not switched)


def operate(name: str, func: Any, args: Any, kwargs: Any) -> Any:
    """The operation, with its sums in a random order if the device wavers."""
    if name in _SUMS and wavers():
        args = _SUMS[name](*args)
    return func(*args, **kwargs)


def any_order(count: int, seed: int | None = None) -> Tensor:
    order = list(range(count))
    (_CHANCE if seed is None else random.Random(seed)).shuffle(order)
    return torch.tensor(order)


def _product(left: Tensor, right: Tensor) -> tuple[Tensor, Tensor]:
    order = any_order(left.shape[-1])
    return left[..., order].contiguous(), right[..., order, :].contiguous()


def _sum_and_product(bias: Tensor, left: Tensor, right: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    return bias, *_product(left, right)


def _embedding(gradient: Tensor, indices: Tensor, *rest: Any) -> Any:
    order = any_order(indices.numel())
    return gradient.reshape(-1, gradient.shape[-1])[order], indices.reshape(-1)[order], *rest


_SUMS: dict[str, Any] = {
    "mm": _product,
    "bmm": _product,
    "addmm": _sum_and_product,
    "baddbmm": _sum_and_product,
    "embedding_dense_backward": _embedding,
}
