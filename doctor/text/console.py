"""rich's console with the settings for everything that we draw."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console


def drawn(show: Callable[[Console], object], columns: int, *, colour: bool) -> str:
    """What `show` prints on a console of that width; without colours the text has no escape sequences."""
    from rich.console import Console

    stream = io.StringIO()
    console = Console(
        file=stream,
        force_terminal=colour,
        color_system="standard" if colour else None,
        no_color=False,  # NO_COLOR has been read: see `coloured` in doctor.text.terminal
        width=columns,
        highlight=False,
        markup=False,
        emoji=False,
    )
    show(console)
    return stream.getvalue()
