"""The source of all that a rank draws: bytes that depend on a text alone. Libraries' numbers are examined."""

from __future__ import annotations

import hashlib
import struct


def hashed(data: bytes) -> str:
    """The hash of these bytes: sixteen hexadecimal digits."""
    return hashlib.shake_128(data).hexdigest(8)


def drawn(key: str, size: int) -> bytes:
    """The first bytes of the stream named `key`."""
    return hashlib.shake_128(key.encode()).digest(size)


def words(key: str, count: int) -> tuple[int, ...]:
    """The first numbers below 2**32 of the stream named `key`."""
    return struct.unpack(f"<{count}I", drawn(key, 4 * count))


def below(limit: int, word: int) -> int:
    """A word as a number below the limit; all are equally likely to within one part in 2**26."""
    return word * limit >> 32


def chance(probability: float, word: int) -> bool:
    return word < probability * 2**32
