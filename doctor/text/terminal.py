"""Writes to stdout and stderr, whatever they are: closed, a pipe whose reader left, of a narrow encoding."""

from __future__ import annotations

import contextlib
import io
import os
import sys
from typing import TextIO

WIDTH = 100
"""Of a log file, where nobody says otherwise (COLUMNS)."""


def prepare() -> None:
    """Signs that an encoding lacks become question marks instead of errors."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")


_PLAIN = str.maketrans(
    {"×": "x", "→": "->", "·": "|", "└": "`", **dict(zip("▁▂▃▄▅▆▇█", "_.,-=+*#", strict=True))}
)
"""For signs of ours that an encoding may lack."""


def plain(text: str, encoding: str | None) -> str:
    """The text as it is where it can be written so, else with signs that are everywhere."""
    try:
        text.encode(encoding or "utf-8")
    except (UnicodeEncodeError, LookupError):
        return text.translate(_PLAIN)
    return text


def put(text: str, stream: TextIO | None) -> None:
    """A reader that has seen enough (`doctor check | head`) is no error; a full disk is one."""
    if stream is None:
        return
    try:
        stream.write(plain(text, getattr(stream, "encoding", None)))
        stream.flush()
    except BrokenPipeError:
        with contextlib.suppress(OSError, ValueError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def width(stream: TextIO | None) -> int:
    """Columns of a terminal; COLUMNS goes over it."""
    wish = os.environ.get("COLUMNS", "")
    if wish.isdecimal() and int(wish) > 0:
        return int(wish)
    if stream is not None and stream.isatty():
        with contextlib.suppress(OSError, ValueError):
            return os.get_terminal_size(stream.fileno()).columns or WIDTH  # mpirun gives one of no size
    return WIDTH
