"""Values by their key. Standard library only, so that it costs no command anything."""

from collections.abc import Iterable
from typing import TypeVar

K = TypeVar("K")
T = TypeVar("T")


def grouped(pairs: Iterable[tuple[K, T]]) -> dict[K, list[T]]:
    """Key -> its values, both in the order in which they come."""
    groups: dict[K, list[T]] = {}
    for key, value in pairs:
        groups.setdefault(key, []).append(value)
    return groups
