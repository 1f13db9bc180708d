"""Writes to stdout and stderr, whatever they are: closed, a pipe whose reader left, of a narrow encoding.

What others wrote is made harmless here, so that no caller has to know what that is.
"""

from __future__ import annotations

import contextlib
import io
import os
import sys
from typing import TextIO

from doctor.text.printable import clean

WIDTH = 100
"""Of a log file, unless COLUMNS says otherwise."""


def prepare() -> None:
    """Characters that an encoding lacks become question marks instead of errors."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")


_PLAIN = str.maketrans(
    {"×": "x", "→": "->", "·": "|", "└": "`", **dict(zip("▁▂▃▄▅▆▇█", "_.,-=+*#", strict=True))}
)
"""For characters of ours that an encoding may lack."""


def plain(text: str, encoding: str | None) -> str:
    """The text, or its ASCII form where the stream cannot encode it."""
    try:
        text.encode(encoding or "utf-8")
    except (UnicodeEncodeError, LookupError):
        return text.translate(_PLAIN)
    return text


def put(text: str, stream: TextIO | None, *, drawn: bool = False) -> None:
    """A reader that has seen enough (`doctor check | head`) is not an error; a full disk is.

    `drawn` text has been cleaned already, and has colours of ours.
    """
    if stream is None:
        return
    try:
        stream.write(plain(text if drawn else clean(text), getattr(stream, "encoding", None)))
        stream.flush()
    except BrokenPipeError:
        with contextlib.suppress(OSError, ValueError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def width(stream: TextIO | None) -> int:
    """Columns of a terminal; COLUMNS overrides it."""
    wish = os.environ.get("COLUMNS", "")
    if wish.isdecimal() and int(wish) > 0:
        return int(wish)
    if stream is not None and stream.isatty():
        with contextlib.suppress(OSError, ValueError):
            return os.get_terminal_size(stream.fileno()).columns or WIDTH  # mpirun gives one of no size
    return WIDTH
