"""The differences between products, and what the lab sets for the emulated host."""

from __future__ import annotations

import os
from dataclasses import dataclass

import torch

REDUCED = frozenset({torch.float32, torch.float16, torch.int64, torch.int32, torch.int8})
"""The types that every product sums.
https://www.hiascend.com/document/detail/zh/canncommercial/850/API/hcclapiref/hcclcpp_07_0020.html"""
MOVED = REDUCED | {torch.float64, torch.int16, torch.uint8}
"""The types that every product broadcasts, gathers, sends and receives."""


@dataclass(frozen=True)
class Product:
    name: str
    """As `torch.npu.get_device_name` gives it."""
    reduced: frozenset[torch.dtype]
    moved: frozenset[torch.dtype]
    rings: bool = False
    """Two groups of four devices: a group of 2 or 4 ranks on a host lies inside one of them."""

    @property
    def computes_bfloat16(self) -> bool:
        return torch.bfloat16 in self.moved


_REDUCED_LATER = REDUCED | {torch.bfloat16, torch.int16}
_MOVED_LATER = MOVED | {torch.bfloat16}
PRODUCTS = {
    "atlas-training": Product("Ascend910A", REDUCED, MOVED, rings=True),
    "atlas-a2": Product("Ascend910B1", _REDUCED_LATER, _MOVED_LATER),
    "atlas-a3": Product("Ascend910_9391", _REDUCED_LATER, _MOVED_LATER),
}


def product() -> Product:
    return PRODUCTS[os.environ["EMULATED_NPU"]]


def devices() -> list[int]:
    """The physical numbers of the devices that this process sees, by their logical numbers."""
    every = list(range(int(os.environ["EMULATED_NPU_DEVICES"])))
    visible = os.environ.get("ASCEND_RT_VISIBLE_DEVICES")
    if visible is None:
        return every
    chosen = []
    for word in visible.split(","):  # up to the first that is not a number
        if not (word.isdecimal() and int(word) in every):
            break
        chosen.append(int(word))
    return chosen


def cann() -> str:
    return os.environ["EMULATED_NPU_CANN"]


def base(version: str) -> str:
    return version.partition("+")[0].partition(".post")[0]


def version() -> str:
    return os.environ["EMULATED_NPU_VERSION"]
