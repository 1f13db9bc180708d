"""Functions of tensors. `layer_norm`, among others, has no kernel on the CPU."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from .tensor import Tensor

matmul, sqrt, exp, log = torch.matmul, torch.sqrt, torch.exp, torch.log
stack, zeros_like, logical_and = torch.stack, torch.zeros_like, torch.logical_and
softmax, masked_fill, gather_elements = torch.softmax, torch.masked_fill, torch.gather


def gather(x: Any, rows: Any, axis: int) -> Any:
    assert axis == 0
    return x[rows]


def gelu(x: Any, *, approximate: str) -> Any:
    return torch.nn.functional.gelu(x, approximate=approximate)


def one_hot(column: Any, depth: int, on: Any, off: Any) -> Any:
    assert (float(on), float(off)) == (1.0, 0.0)
    return torch.nn.functional.one_hot(column, depth).float()


def rand(count: int) -> Any:
    return torch.rand(count).as_subclass(Tensor)


def dropout(x: Any, *, p: float, training: bool) -> Any:
    return torch.dropout(x, p, training)


class LayerNorm:
    def __init__(self, *, begin_norm_axis: int, begin_params_axis: int, epsilon: float) -> None:
        assert begin_norm_axis == begin_params_axis == -1
        self.epsilon = epsilon

    def __call__(self, x: Any, scale: Any, shift: Any) -> tuple[Any, ...]:
        return (torch.layer_norm(x, x.shape[-1:], scale, shift, self.epsilon),)


class Cell:
    """`nn.Cell`: what `construct` gives, with the gradient that `bprop` gives."""

    construct: Callable[..., Any]
    bprop: Callable[..., Any]

    def __call__(self, *inputs: Any) -> Any:
        return _Custom.apply(self, *inputs)  # type: ignore[no-untyped-call]


class _Custom(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, cell: Cell, *inputs: Any) -> Any:
        ctx.cell, ctx.inputs = cell, [each.detach() for each in inputs]
        return cell.construct(*ctx.inputs)

    @staticmethod
    def backward(ctx: Any, *douts: Any) -> Any:
        given = ctx.cell.bprop(*ctx.inputs, None, douts[0].as_subclass(Tensor))
        whole = [each.plain.is_floating_point() for each in ctx.inputs]
        return (None, *(each if real else None for each, real in zip(given, whole, strict=True)))
