"""Writes to stdout and stderr, whatever they are: closed, a pipe whose reader left, of a narrow encoding.

What others wrote is made harmless here, so that no caller has to know what that is.
"""

from __future__ import annotations

import contextlib
import io
import os
import sys
import termios
from typing import TextIO

from doctor.text.printable import clean

WIDTH = 100
"""Of a log file, unless COLUMNS says otherwise."""
AUTO, ALWAYS, NEVER = WHEN = ("auto", "always", "never")
"""When there are colours."""


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
    {
        "×": "x",
        "→": "->",
        "·": "|",
        "└": "`",
        "…": "~",
        "━": "=",
        "╸": "-",
        "╺": "-",
        "│": "|",
        "┤": "|",
        "─": "-",
        "┄": ".",
        "┊": ":",
        "▲": "^",
        "✓": "ok",
        "–": "-",
        **dict(zip("▁▂▃▄▅▆▇█", "_.,-=+*#", strict=True)),
    }
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


def can_redraw(stream: TextIO | None) -> bool:
    """Whether a line can be drawn over: on a terminal, and not on a dumb one."""
    return stream is not None and stream.isatty() and os.environ.get("TERM") not in ("dumb", "unknown")


def coloured(stream: TextIO | None, wish: str = AUTO) -> bool:
    """The option decides, then NO_COLOR, then what forces colours, then whether the terminal has any."""
    if wish != AUTO:
        return wish == ALWAYS
    if os.environ.get("NO_COLOR"):
        return False
    if any(os.environ.get(name, "") not in ("", "0") for name in ("FORCE_COLOR", "CLICOLOR_FORCE")):
        return True
    return os.environ.get("CLICOLOR") != "0" and can_redraw(stream)


def styled(text: str, style: str, on: bool) -> str:
    """In a style of ours, as its number in an escape: 1 is bold, 31 red."""
    return f"\x1b[{style}m{text}\x1b[0m" if on and text else text


def taken(stream: TextIO | None) -> bool:
    """Whether another program has the terminal now: a pager, an editor, a question for a password, a shell
    that reads its next line. All of these read keys or hide them.
    """
    try:
        flags = termios.tcgetattr(stream.fileno())[3] if stream is not None else 0
    except (OSError, termios.error, ValueError):
        return False
    return not flags & termios.ICANON or not flags & termios.ECHO


def room(stream: TextIO | None) -> int:
    """Columns for a line that is drawn over: it must not wrap, whatever COLUMNS says."""
    wide = width(stream)
    if stream is not None:
        with contextlib.suppress(OSError, ValueError):
            wide = min(wide, os.get_terminal_size(stream.fileno()).columns or wide)
    return wide - 1


def width(stream: TextIO | None, log: int = WIDTH) -> int:
    """Columns of a terminal, or `log`; COLUMNS overrides both."""
    wish = os.environ.get("COLUMNS", "")
    if wish.isdecimal() and int(wish) > 0:
        return int(wish)
    if stream is not None and stream.isatty():
        with contextlib.suppress(OSError, ValueError):
            return os.get_terminal_size(stream.fileno()).columns or log  # mpirun gives one of no size
    return log
