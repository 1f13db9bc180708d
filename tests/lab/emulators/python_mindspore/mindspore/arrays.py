"""What a training takes of numpy: arrays that are torch's tensors. It draws no numbers."""

from __future__ import annotations

import ctypes
from typing import Any

import torch

bool_, uint8, float32, float64 = "bool", "uint8", "float32", "float64"
uint16, uint32 = "uint16", "uint32"
_TORCH = {"uint16": torch.int16, "uint32": torch.int32}
"""Types whose bits alone matter here: torch cannot shift them."""


def kind(name: str) -> torch.dtype:
    found = _TORCH.get(name) or getattr(torch, name)
    assert isinstance(found, torch.dtype)
    return found


class Array(torch.Tensor):
    """`dtype` is the name of its type; all other names are torch's if torch means the same by them."""

    @property
    def plain(self) -> torch.Tensor:
        """The same memory, as torch wants to see it."""
        return self.detach().as_subclass(torch.Tensor)

    @property
    def dtype(self) -> str:  # type: ignore[override]
        return str(self.plain.dtype).removeprefix("torch.")

    @property
    def size(self) -> int:  # type: ignore[override]
        return self.numel()

    def astype(self, name: str) -> Array:
        return self.to(kind(str(name).lower()))  # type: ignore[return-value]

    def view(self, name: str) -> Array:  # type: ignore[override]
        return self.plain.view(kind(name)).as_subclass(Array)

    def copy(self) -> Array:
        return self.clone()  # type: ignore[return-value]

    def tobytes(self) -> bytes:
        whole = self.plain.contiguous()
        return ctypes.string_at(whole.data_ptr(), whole.numel() * whole.element_size())


def frombuffer(data: bytes, dtype: str) -> Array:
    return torch.frombuffer(bytearray(data), dtype=kind(dtype)).as_subclass(Array)


def ones(count: int, dtype: str) -> Array:
    return torch.ones(count, dtype=kind(dtype)).as_subclass(Array)


def abs(x: Any) -> Any:
    return torch.abs(x)


def packbits(x: Array) -> Array:
    eights = x.plain.reshape(-1, 8).to(torch.int32)
    return (eights << torch.arange(7, -1, -1)).sum(1).to(torch.uint8).as_subclass(Array)
