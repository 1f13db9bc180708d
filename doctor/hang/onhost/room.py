"""How much a host may say of its processes, so that none of its users leaves others without room."""

import json
from collections.abc import Iterable
from typing import Any

WHOLE = 64 << 20
"""Weight of all that one host says. The controller hears no more of a host that goes beyond."""
FOR_MEMBERS, FOR_LOOK, FOR_BETWEEN, FOR_LIBRARIES = 6 << 20, 14 << 20, 8 << 20, 16 << 20
LINE, VALUE, GROUP, WIDE = 512, 24, 160, 4
_ASCII = bytes(range(128))


def weight(line: bytes) -> int:
    """About the bytes that it takes where it is decoded: small values take more than their text, and a letter
    beyond 16 bits makes all of its text as wide.
    """
    wide = WIDE if b"\\ud" in line or not _is_ascii(line) else 1
    return wide * max(LINE, len(line), VALUE * line.count(b","), GROUP * line.count(b"{"))


def _is_ascii(line: bytes) -> bool:
    """bytes.isascii is of Python 3.7."""
    return not line.translate(None, _ASCII)


class Room:
    """An equal share for each user."""

    def __init__(self, whole: int, users: "Iterable[str]") -> None:
        names = set(users)
        self.left = dict.fromkeys(names, whole // max(1, len(names)))

    def takes(self, user: str, said: Any) -> bool:
        """Whether there is room for it; then there is less."""
        self.left[user] -= weight(json.dumps(said).encode("ascii"))
        return self.left[user] >= 0
