"""An EMULATED MindSpore for the CPU, without the wheel of 800 MB: torch computes, gloo carries.

It has the names that the smoke run uses, and refuses what the real one was measured to refuse (2.10.0): see
`tests/mindspore` for runs with the real one. Only the lab puts it on the path of an interpreter
(`tests/lab/mindspore_python.py`).
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import Any

import torch

from . import arrays

sys.modules.setdefault("numpy", arrays)  # MindSpore needs numpy, and the tests do not

from .tensor import Parameter, Tensor  # noqa: E402, I001
from . import communication, mint, nn, ops  # noqa: E402

__all__ = ["Parameter", "Tensor", "communication", "mint", "nn", "ops"]
__version__ = os.environ["EMULATED_MINDSPORE"]

PYNATIVE_MODE = 1
float32, bfloat16, int64, bool_ = "float32", "bfloat16", "int64", "bool"


def set_context(*, mode: int) -> None:
    assert mode == PYNATIVE_MODE
    torch.set_num_threads(1)


def set_device(target: str, number: int = 0) -> None:
    if target != "CPU":
        raise RuntimeError(f"Unsupported device target {target} (number {number})")


def get_context(name: str) -> str:
    assert name == "device_target"
    return "CPU"


def set_seed(seed: int) -> None:
    torch.manual_seed(seed)


def manual_seed(seed: int) -> None:
    """Nothing on the CPU draws from the default generator."""


def value_and_grad(call: Callable[..., Any], positions: None, weights: list[Parameter]) -> Callable[..., Any]:
    assert positions is None

    def both(*inputs: Any) -> tuple[Tensor, tuple[Tensor, ...]]:
        loss = call(*inputs)
        loss.as_subclass(torch.Tensor).backward()
        found = []
        for weight in weights:
            assert weight.grad is not None
            found.append(weight.grad.as_subclass(Tensor))
            weight.grad = None
        return loss, tuple(found)

    return both
