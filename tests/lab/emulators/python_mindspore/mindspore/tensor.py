"""Tensors and parameters."""

from __future__ import annotations

from typing import Any

import torch

from .arrays import Array, kind


class Tensor(Array):
    def __new__(cls, data: Any, dtype: str = "float32") -> Tensor:
        if not hasattr(data, "tobytes"):
            return torch.tensor(data, dtype=kind(dtype)).as_subclass(cls)
        flat = torch.frombuffer(bytearray(data.tobytes()), dtype=kind(str(data.dtype)))
        return flat.reshape(tuple(data.shape)).as_subclass(cls)

    def asnumpy(self) -> Array:
        plain = self.plain.float() if self.dtype == "bfloat16" else self.plain
        return plain.as_subclass(Array)

    def assign_value(self, value: Tensor) -> None:
        self.plain.copy_(value.plain)

    def transpose(self, *axes: int) -> Tensor:
        return self.permute(*axes)  # type: ignore[return-value]

    def max(self, axis: int) -> Tensor:  # type: ignore[override]
        return self.amax(axis)  # type: ignore[return-value]


class Parameter(Tensor):
    def __new__(cls, data: Tensor, name: str) -> Parameter:
        assert name
        return data.plain.clone().as_subclass(cls).requires_grad_()  # type: ignore[return-value]
