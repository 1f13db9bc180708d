"""How much a host may report about its processes, so that no user can crowd out the others."""

import json
from collections.abc import Iterable
from typing import Any

WHOLE = 64 << 20
"""The largest total weight that one host may send. The controller drops a host that sends more."""
FOR_MEMBERS, FOR_LOOK, FOR_BETWEEN, FOR_LIBRARIES = 6 << 20, 14 << 20, 8 << 20, 16 << 20
LINE, VALUE, GROUP, WIDE = 512, 24, 160, 4
LONGEST = 900_000
"""The most bytes of one message."""
FULL = "threads, stacks and connections: the processes of its user have more of these than are looked at"
_ASCII = bytes(range(128))


def weight(line: bytes) -> int:
    """The approximate memory of a line after decoding. Small values take more than their text, and one
    character beyond 16 bits makes its whole text four bytes wide.
    """
    wide = WIDE if b"\\ud" in line or line.translate(None, _ASCII) else 1  # bytes.isascii needs Python 3.7
    return wide * max(LINE, len(line), VALUE * line.count(b","), GROUP * line.count(b"{"))


class Room:
    """Room with an equal share for each user."""

    def __init__(self, whole: int, users: "Iterable[str]") -> None:
        names = set(users)
        self.left = dict.fromkeys(names, whole // max(1, len(names)))

    def takes(self, user: str, said: Any) -> bool:
        """Take room for this value; False if the user has none left."""
        self.left[user] -= weight(json.dumps(said).encode("ascii"))
        return self.left[user] >= 0


def fitting(look: "dict[str, Any]", user: str, place: "Room") -> "dict[str, Any]":
    """The look, or only its state if the user's processes have used up their share of the room."""
    look = bounded(look)
    if place.takes(user, look):
        return look
    return dict({key: look[key] for key in ("pid", "state", "cpu") if key in look}, unread=[FULL])


def bounded(look: "dict[str, Any]") -> "dict[str, Any]":
    """The look without its last threads and connections if it is too long for one message."""
    for key in ("python", "connections", "threads"):
        while size(look) > LONGEST and look.get(key):
            kept = len(look[key]) // 2
            look["unread"].append(f"{key}: only the first {kept} were kept")
            look[key] = look[key][:kept]
    look["unread"] = look["unread"][:16]
    return look


def size(value: Any) -> int:
    """The number of bytes as JSON."""
    return len(json.dumps(value))
