"""Writes to stdout and stderr in any state: closed, a pipe without a reader, with a narrow encoding.

Untrusted text is made harmless here, so that callers need not do it.
"""

import contextlib
import io
import os
import sys
import termios
from typing import TextIO

from doctor.text.printable import clean

WIDTH = 100
"""The width of a log file, unless COLUMNS is set."""
AUTO, ALWAYS, NEVER = WHEN = ("auto", "always", "never")
"""The values of --color."""


def hold_closed() -> None:
    """Opens /dev/null for closed standard streams: otherwise the next file or socket would get the stream's
    number, and the output meant for the stream.
    """
    for number, name, mode in ((0, "stdin", "r"), (1, "stdout", "w"), (2, "stderr", "w")):
        if getattr(sys, name) is None:
            null = os.open(os.devnull, os.O_RDWR)
            if null != number:
                os.dup2(null, number)
                os.close(null)
            os.set_inheritable(number, True)  # in a child the number is taken, too
            setattr(sys, name, open(number, mode, closefd=False))  # noqa: SIM115  # until the end


def prepare() -> None:
    """Makes characters that the encoding lacks appear as question marks instead of raising errors."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")


_PLAIN = str.maketrans(
    dict(zip("×·└…━╸╺│┤─┄┊▲–▁▂▃▄▅▆▇█", "x|`~=--||-.:^-_.,-=+*#", strict=True)) | {"→": "->", "✓": "ok"}
)
"""Replacements for our own characters that an encoding may lack."""


def plain(text: str, encoding: str | None) -> str:
    """The text, or its ASCII form if the stream cannot encode it."""
    return text if takes(text, encoding) else text.translate(_PLAIN)


def takes(text: str, encoding: str | None) -> bool:
    """Whether a stream can encode the text."""
    try:
        text.encode(encoding or "utf-8")
    except (UnicodeEncodeError, LookupError):
        return False
    return True


def put(text: str, stream: TextIO | None, *, drawn: bool = False) -> None:
    """Writes the text. A reader that leaves early (`doctor check | head`) is not an error; a full disk is.

    `drawn` text has been cleaned already and holds our own colours.
    """
    if stream is None:
        return
    try:
        stream.write(plain(text if drawn else clean(text), getattr(stream, "encoding", None)))
        stream.flush()
    except BrokenPipeError:
        _give_up(stream)


def tell(text: str, *, drawn: bool = False) -> None:
    """Writes to stderr; an error is ignored, since it could not be reported either."""
    try:
        put(text, sys.stderr, drawn=drawn)
    except OSError:
        _give_up(sys.stderr)


def settle() -> str:
    """Flushes what `print` has left in the buffers, before the end. Returns why stdout could not take all of
    it.

    Otherwise the interpreter would flush at exit, and replace the exit code if that fails.
    """
    tell("")
    try:
        put("", sys.stdout)
    except OSError as error:
        _give_up(sys.stdout)
        return error.strerror or type(error).__name__
    return ""


def _give_up(stream: TextIO) -> None:
    """Discards what the stream still holds, and everything that is written to it from now on."""
    with contextlib.suppress(OSError, ValueError):
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, stream.fileno())
        os.close(null)
        stream.flush()


def can_redraw(stream: TextIO | None) -> bool:
    """Whether a line can be redrawn: on a terminal that is not dumb."""
    return stream is not None and stream.isatty() and os.environ.get("TERM") not in ("dumb", "unknown")


def coloured(stream: TextIO | None, wish: str = AUTO) -> bool:
    """Whether to use colours: the option decides, then NO_COLOR, then FORCE_COLOR, then the terminal."""
    if wish != AUTO:
        return wish == ALWAYS
    if os.environ.get("NO_COLOR"):
        return False
    if any(os.environ.get(name, "") not in ("", "0") for name in ("FORCE_COLOR", "CLICOLOR_FORCE")):
        return True
    return os.environ.get("CLICOLOR") != "0" and can_redraw(stream)


def styled(text: str, style: str, on: bool) -> str:
    """The text in a style, given as the number in its escape sequence: 1 is bold, 31 red."""
    return f"\x1b[{style}m{text}\x1b[0m" if on and text else text


def taken(stream: TextIO | None) -> bool:
    """Whether another program uses the terminal now: a pager, an editor, a password prompt or a shell that
    reads its next line. All of these read single keys or hide what is typed.
    """
    try:
        flags = termios.tcgetattr(stream.fileno())[3] if stream is not None else 0
    except (OSError, termios.error, ValueError):
        return False
    return not flags & termios.ICANON or not flags & termios.ECHO


def room(stream: TextIO | None) -> int:
    """The columns of a line that is redrawn: it must not wrap, whatever COLUMNS says."""
    wide = width(stream)
    if stream is not None:
        with contextlib.suppress(OSError, ValueError):
            wide = min(wide, os.get_terminal_size(stream.fileno()).columns or wide)
    return wide - 1


def width(stream: TextIO | None, log: int = WIDTH) -> int:
    """The columns of a terminal, or `log`; COLUMNS overrides both."""
    wish = os.environ.get("COLUMNS", "")
    if wish.isdecimal() and int(wish) > 0:
        return int(wish)
    if stream is not None and stream.isatty():
        with contextlib.suppress(OSError, ValueError):
            return os.get_terminal_size(stream.fileno()).columns or log  # under mpirun its size is 0
    return log
