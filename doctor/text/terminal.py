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


def hold_closed() -> None:
    """Where a standard stream is closed, /dev/null: or else the next file or socket would get its number, and
    what is meant for the stream.
    """
    for number, name, mode in ((0, "stdin", "r"), (1, "stdout", "w"), (2, "stderr", "w")):
        if getattr(sys, name) is None:
            null = os.open(os.devnull, os.O_RDWR)
            if null != number:
                os.dup2(null, number)
                os.close(null)
            setattr(sys, name, open(number, mode, closefd=False))  # noqa: SIM115  # until the end


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
        _give_up(stream)


def tell(text: str, *, drawn: bool = False) -> None:
    """Something that belongs on stderr; where that cannot be written, nobody can be told."""
    try:
        put(text, sys.stderr, drawn=drawn)
    except OSError:
        _give_up(sys.stderr)


def settle() -> str:
    """Before the end: write what `print` has left behind. Returns why stdout did not take all of it.

    The interpreter would otherwise do so last of all, and end with a code of its own where it cannot.
    """
    tell("")
    try:
        put("", sys.stdout)
    except OSError as error:
        _give_up(sys.stdout)
        return error.strerror or type(error).__name__
    return ""


def _give_up(stream: TextIO) -> None:
    """What the stream still holds, and what is written to it from now on, goes nowhere."""
    with contextlib.suppress(OSError, ValueError):
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, stream.fileno())
        os.close(null)
        stream.flush()


def width(stream: TextIO | None) -> int:
    """Columns of a terminal; COLUMNS overrides it."""
    wish = os.environ.get("COLUMNS", "")
    if wish.isdecimal() and int(wish) > 0:
        return int(wish)
    if stream is not None and stream.isatty():
        with contextlib.suppress(OSError, ValueError):
            return os.get_terminal_size(stream.fileno()).columns or WIDTH  # mpirun gives one of no size
    return WIDTH
