"""Hashes of what a job trains on, by the data alone: of an unknown type, the address would be hashed."""

from __future__ import annotations

import ctypes
import hashlib
import struct
from collections.abc import Mapping
from typing import Any


def digest(value: Any) -> str:
    """16 hexadecimal digits; raises TypeError for a type that it does not know."""
    hashed = hashlib.shake_128()
    _feed(hashed, value, 8)
    return hashed.hexdigest(8)


def _feed(hashed: Any, value: Any, depth: int) -> None:
    if depth < 0:
        raise TypeError("nested too deeply")
    if hasattr(value, "data_ptr") and hasattr(value, "detach"):
        _feed_torch(hashed, value)
    elif hasattr(value, "asnumpy"):  # MindSpore
        _feed(hashed, value.asnumpy(), depth - 1)
    elif hasattr(value, "tobytes") and hasattr(value, "dtype"):  # numpy's arrays and numbers
        _feed_numpy(hashed, value, depth)
    elif isinstance(value, Mapping):
        _mark(hashed, "dict", len(value))
        for key in sorted(value, key=str):
            _feed(hashed, str(key), depth - 1)
            _feed(hashed, value[key], depth - 1)
    elif isinstance(value, (list, tuple)):
        _mark(hashed, "list", len(value))
        for part in value:
            _feed(hashed, part, depth - 1)
    elif value is None or isinstance(value, (bool, int, str)):
        text = f"{type(value).__name__} {value}".encode("utf-8", "surrogatepass")
        _mark(hashed, "text", len(text))
        hashed.update(text)
    elif isinstance(value, float):
        _mark(hashed, "float", 8)
        hashed.update(struct.pack("<d", value))
    elif isinstance(value, (bytes, bytearray, memoryview)):
        _mark(hashed, "bytes", len(value))
        hashed.update(value)
    else:
        raise TypeError(f"a {type(value).__name__}")


def _feed_torch(hashed: Any, tensor: Any) -> None:
    # Neither copies nor changes a contiguous CPU tensor; draws no random numbers and records no gradient.
    here = tensor.detach().to("cpu").contiguous()
    if str(here.layout) != "torch.strided" or here.is_conj() or here.is_neg():
        raise TypeError(f"a tensor of layout {here.layout}")
    size = here.numel() * here.element_size()
    _mark(hashed, f"{str(here.dtype).rpartition('.')[2]} {list(here.shape)}", size)
    if size:
        hashed.update((ctypes.c_char * size).from_address(here.data_ptr()))


def _feed_numpy(hashed: Any, array: Any, depth: int) -> None:
    if array.dtype.hasobject:
        _feed(hashed, array.tolist(), depth - 1)
        return
    data = array.tobytes()
    _mark(hashed, f"{array.dtype.name} {list(array.shape)}", len(data))
    hashed.update(data)


def _mark(hashed: Any, kind: str, size: int) -> None:
    hashed.update(f"{kind} {size}\n".encode())
