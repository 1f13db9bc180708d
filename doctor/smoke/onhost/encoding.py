"""Numbers as the bytes of a data type, in the order of this machine, without any framework."""

from __future__ import annotations

import struct
from collections.abc import Sequence

_FLOATS = {"float64": "d", "float32": "f", "float16": "e"}
FORMS = {**_FLOATS, "int64": "q", "int32": "i", "int16": "h", "int8": "b", "uint8": "B"}
_HALF = 1 << 16
"""A bfloat16 is the upper half of a float32."""


def encoded(numbers: Sequence[float], dtype: str) -> bytes:
    """The bytes of these numbers, which the type must hold exactly."""
    if dtype == "bfloat16":
        whole = struct.unpack(f"={len(numbers)}I", encoded(numbers, "float32"))
        return struct.pack(f"={len(numbers)}H", *(word // _HALF for word in whole))
    return struct.pack(f"={len(numbers)}{FORMS[dtype]}", *numbers)


def decoded(data: bytes, dtype: str) -> tuple[float, ...]:
    if dtype == "bfloat16":
        halves = struct.unpack(f"={len(data) // 2}H", data)
        return decoded(struct.pack(f"={len(halves)}I", *(half * _HALF for half in halves)), "float32")
    form = FORMS[dtype]
    return struct.unpack(f"={len(data) // struct.calcsize(form)}{form}", data)
