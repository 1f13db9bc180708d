"""What the board_id of the oldest form says of the machine."""

from __future__ import annotations

import re
from typing import Literal

Architecture = Literal["x86_64", "aarch64"]

BOARDS: dict[Architecture, str] = {"x86_64": "0x0000", "aarch64": "0x0020"}
"""As MindSpore's tutorials write them; its launch scripts write 0x002f for aarch64."""

_HEX = re.compile(r"0[xX][0-9a-fA-F]{1,8}")
_UNCOMPARED = 0xF
"""HCCL does not compare the last four bits of these two."""


def board_architecture(board_id: str | None) -> Architecture | None:
    """None for a board that is neither: evaluation boards and inference cards have numbers of their own."""
    if board_id is None or not _HEX.fullmatch(board_id):
        return None
    family = int(board_id, 16) & ~_UNCOMPARED
    return next((name for name, board in BOARDS.items() if int(board, 16) == family), None)
