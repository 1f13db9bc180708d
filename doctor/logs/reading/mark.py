"""How a part of a file ends, where its job may have been started again."""

from __future__ import annotations

from enum import Enum


class Mark(Enum):
    """How a part ends."""

    FAILED = "failed"
    """torchrun saw a rank fail, and has ended the others."""
    RESTART = "restart"
    """It says that it starts them again."""
    OVER = "over"
    """torchrun itself is at its end."""
