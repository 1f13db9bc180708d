"""rich's console with the settings for everything that we draw."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import TYPE_CHECKING, TextIO

from doctor.text.terminal import coloured, put, width

if TYPE_CHECKING:
    from rich.console import Console


def draw(show: Callable[[Console], object], out: TextIO, colours: str) -> None:
    """Writes what `show` prints, in the width of the stream; `colours` is one of WHEN."""
    put(drawn(show, width(out), colour=coloured(out, colours)), out, drawn=True)


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
