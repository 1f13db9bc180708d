"""Tensors of the device: each one, and each view of it, wraps a CPU tensor and shares its memory.

Every operation arrives here below autograd, is checked as the device would check it, and runs on the CPU.
"""

from __future__ import annotations

import importlib
import sys
from types import ModuleType
from typing import Any

import torch
from torch import Tensor
from torch.utils._pytree import tree_map

from . import errors, hccl, products, wavering
from .state import STATE

_BFLOAT16_ANYWAY = frozenset(
    {
        *("detach", "alias", "view", "_unsafe_view", "as_strided", "expand", "squeeze", "unsqueeze"),
        *("slice", "select", "split", "t", "transpose", "permute"),
        *("clone", "copy_", "_to_copy", "lift_fresh", "empty_like"),
    }
)
"""Operations that move memory and compute nothing."""
_COMPUTED = "DT_FLOAT16,DT_FLOAT,DT_DOUBLE,DT_INT8,DT_UINT8,DT_INT16,DT_INT32,DT_INT64,DT_BOOL,DT_COMPLEX64,"


_Library: Any = torch.library.Library


class NpuTensor(Tensor):
    """torch itself knows only the first device of this kind here, so the number is stored beside it."""

    raw: Tensor
    number: int

    @staticmethod
    def __new__(cls: type[NpuTensor], raw: Tensor) -> NpuTensor:
        made: NpuTensor = Tensor._make_wrapper_subclass(
            cls,
            raw.size(),
            strides=raw.stride(),
            storage_offset=raw.storage_offset(),
            dtype=raw.dtype,
            device=torch.device("npu", 0),
        )
        made.raw, made.number = raw, STATE.device
        return made

    @property
    def device(self) -> torch.device:  # type: ignore[override]
        return torch.device("npu", self.number)

    def __repr__(self) -> str:  # type: ignore[override]
        return f"{self.raw!r} on an emulated {self.device}"

    def tolist(self) -> Any:
        return self.cpu().tolist()

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:  # type: ignore[override]
        if func.namespace == "c10d":
            return hccl.call(func, args, kwargs or {})
        return _operate(func, args, kwargs or {})


def _operate(func: Any, args: Any, kwargs: Any) -> Any:
    STATE.use_queue()
    name = func._schema.name.partition("::")[2]
    wrapped: dict[int, Tensor] = {}
    _check(name, args, kwargs)

    def unwrap(x: Any) -> Any:
        if isinstance(x, NpuTensor):
            wrapped[id(x.raw)] = x
            return x.raw
        return x

    def wrap(x: Any) -> Any:
        if not isinstance(x, Tensor):
            return x
        return wrapped.get(id(x)) if id(x) in wrapped else NpuTensor(x)

    args, kwargs = tree_map(unwrap, args), tree_map(unwrap, kwargs)
    to = kwargs.get("device")
    if to is not None:
        kwargs["device"] = torch.device("cpu")
    if any(argument.name == "generator" for argument in func._schema.arguments):
        kwargs.setdefault("generator", STATE.random)
    with torch.no_grad():
        result = wavering.operate(name, func, args, kwargs)
    if name == "_to_copy" and to is not None and torch.device(to).type == "cpu":
        return result
    if name == "copy_" and not isinstance(wrapped.get(id(args[0])), NpuTensor):
        return result
    return tree_map(wrap, result)


def _check(name: str, args: Any, kwargs: Any) -> None:
    tensors: list[Tensor] = []
    tree_map(lambda x: tensors.append(x) if isinstance(x, Tensor) else None, (args, kwargs))
    if name not in ("copy_", "_copy_from", "_to_copy") and any(
        not isinstance(x, NpuTensor) and x.dim() for x in tensors
    ):
        raise errors.other_device(STATE.device, STATE.rank)
    if products.product().computes_bfloat16:
        return
    types = {x.dtype for x in tensors} | ({kwargs["dtype"]} if kwargs.get("dtype") else set())
    if torch.bfloat16 in types and (name not in _BFLOAT16_ANYWAY or len(types) > 1):
        named = "Cast" if len(types) > 1 else name.strip("_").title().replace("_", "")
        raise errors.operator(f"aclnn{named}", STATE.device, STATE.rank, "DT_BFLOAT16", _COMPUTED)


def register() -> None:
    """Create tensors for operations whose arguments do not include a tensor of the device."""
    _put_off_dtensor()
    library: Any = _Library("aten", "IMPL")
    library.impl("empty.memory_format", _empty, "PrivateUse1")
    library.impl("empty_strided", _empty_strided, "PrivateUse1")
    library.impl("_copy_from", _copy_from, "PrivateUse1")
    _KEPT.append(library)


_KEPT: list[Any] = []


def _put_off_dtensor() -> None:
    """To recognise a DTensor, torch would load its module and sympy: half a second for each rank. The real
    module is loaded when any other name of it is used.
    """
    name = "torch.distributed.tensor"

    def load(wanted: str) -> Any:
        if wanted.startswith("__"):
            raise AttributeError(wanted)
        if sys.modules[name] is stands_in:
            del sys.modules[name]
        return getattr(importlib.import_module(name), wanted)

    stands_in: Any = ModuleType(name)
    stands_in.__path__ = [f"{torch.distributed.__path__[0]}/tensor"]
    stands_in.DTensor = type("DTensor", (Tensor,), {})
    stands_in.__getattr__ = load
    sys.modules.setdefault(name, stands_in)


def _empty(size: Any, *, dtype: Any = None, **_options: Any) -> Tensor:
    STATE.use_queue()
    return NpuTensor(torch.empty(size, dtype=dtype))


def _empty_strided(size: Any, stride: Any, *, dtype: Any = None, **_options: Any) -> Tensor:
    STATE.use_queue()
    return NpuTensor(torch.empty_strided(size, stride, dtype=dtype))


def _copy_from(source: Tensor, target: Tensor, _non_blocking: bool = False) -> Tensor:
    STATE.use_queue()
    into = target.raw if isinstance(target, NpuTensor) else target
    into.copy_(source.raw if isinstance(source, NpuTensor) else source)
    return target
