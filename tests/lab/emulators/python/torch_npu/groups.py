"""Which devices may form a group, by the rules for `create_group` in CANN's manuals (8.0 to 9.0).

Atlas training: each host takes part with 1, 2, 4 or 8 devices, and all hosts with the same number. Devices
0-3 and 4-7 are a ring each; 2 or 4 of a host lie in one ring, the same on every host. The later products
allow any group.
https://www.hiascend.com/document/detail/zh/canncommercial/850/API/hcclapiref/hcclpython_07_0003.html
"""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple


class Place(NamedTuple):
    """A member of a group: its host, and the physical number of its device."""

    server: str
    device: int


def refusal(members: list[Place], *, rings: bool) -> str:
    """Why there cannot be such a group; empty if it is allowed."""
    twice = [place for place, times in Counter(members).items() if times > 1]
    if twice:
        return f"device {twice[0].device} of server {twice[0].server} is in the group twice"
    if not rings:
        return ""
    counts = Counter(place.server for place in members)
    if len(set(counts.values())) > 1:
        return f"servers take part with different numbers of devices: {dict(counts)}"
    count = next(iter(counts.values()))
    if count not in (1, 2, 4, 8):
        return f"{count} devices of a server: must be 1, 2, 4 or 8"
    if count in (2, 4) and len({place.device // 4 for place in members}) > 1:
        return f"devices {sorted({place.device for place in members})} are not in one ring (0-3 or 4-7)"
    return ""
