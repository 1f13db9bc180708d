"""Reads a text file from a person or another tool: bounded, UTF-8, every mistake with its line.

It holds what all readers of input files share, and knows no file format.
"""

import math
import os
import re
import select
import stat
import time
import zlib
from collections.abc import Callable, Iterable
from pathlib import Path

from doctor.errors import InputErrors, Mistake, UsageError

LIMIT = 10_000_000
"""The most bytes of a file. 100,000 hosts with settings need less; a larger file is the wrong one."""

PATIENCE = 60.0
"""Seconds to wait for a pipe: `<(command)` may query another machine; without a writer a pipe never ends."""

PIECE = 1 << 20

MOST_MISTAKES = 100
"""A file with more mistakes is probably of a different kind, and a longer list does not help."""

BINARY = "is a binary file, not text"
_UTF16 = (b"\xff\xfe", b"\xfe\xff")
_SURROGATE = re.compile("[\udc80-\udcff]")
_MIRRORED = bytes(int(f"{byte:08b}"[::-1], 2) for byte in range(256))


def read_text(path: Path, limit: int = LIMIT) -> str:
    """The file as text without a byte order mark; pipes such as `<(command)` work. Raises InputErrors."""
    return text_of(read_bytes(path, limit), str(path))


def read_bytes(
    path: Path,
    limit: int = LIMIT,
    *,
    magic: bytes | None = None,
    opened: Callable[[os.stat_result], None] = lambda _: None,
) -> bytes:
    """The bytes of the file; a binary file is refused unless it begins with `magic`. Raises InputErrors.

    `opened` is called with the status of the file that was really opened, and may raise: another file may
    have taken the name since it was examined.
    """
    file = str(path)
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
        try:
            opened(os.fstat(handle))
            data = _read(handle, limit, magic)
        finally:
            os.close(handle)
    except TimeoutError:
        message = f"is a pipe that did not end within {PATIENCE:.0f} s"
        raise InputErrors([Mistake(file, None, message)]) from None
    except (OSError, ValueError) as error:  # ValueError: a NUL in the path
        raise InputErrors([Mistake(file, None, _why(error))]) from error
    binary = magic is not None and data.startswith(magic)
    if not binary and b"\0" in data and not data.startswith(_UTF16):  # UTF-16: see `text_of`
        raise InputErrors([Mistake(file, None, BINARY)])
    if len(data) > limit:
        message = f"is larger than {limit // 1_000_000} MB: is it the right file?"
        raise InputErrors([Mistake(file, None, message)])
    return data


def _read(handle: int, limit: int, magic: bytes | None) -> bytes:
    """Reads up to one byte more than the limit. Reading text stops at the first NUL: text has none, and
    /dev/zero never ends. Raises TimeoutError.
    """
    mode = os.fstat(handle).st_mode
    until = math.inf if os.isatty(handle) else time.monotonic() + PATIENCE
    named = stat.S_ISFIFO(mode) and os.readlink(f"/proc/self/fd/{handle}").startswith("/")
    data = bytearray()
    while len(data) <= limit:
        try:
            piece = os.read(handle, min(PIECE, limit + 1 - len(data)))
        except BlockingIOError:
            _await(handle, until)
            continue
        if piece:
            data += piece
            if b"\0" in piece and (magic is None or not data.startswith(magic)):
                break
        elif named and not data:  # no writer has opened the pipe yet
            named = False
            _await(handle, until)
        else:
            break
    return bytes(data)


def _await(handle: int, until: float) -> None:
    poll = select.poll()
    poll.register(handle, select.POLLIN)
    left = until - time.monotonic()
    if not poll.poll(None if left == math.inf else max(left, 0) * 1000):
        raise TimeoutError


def text_of(data: bytes, file: str) -> str:
    """The content of a file as text, without a byte order mark. Raises InputErrors."""
    if data.startswith(_UTF16):
        raise InputErrors([Mistake(file, None, "is UTF-16 text: save it as UTF-8")])
    if b"\0" in data:
        raise InputErrors([Mistake(file, None, BINARY)])
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        refuse(Mistake(file, line, f"is not UTF-8 text: {byte}") for line, byte in _undecodable(data))
        raise  # not reached: if the whole cannot be decoded, at least one of its lines cannot


def posix_cksum(data: bytes) -> str:
    """The checksum of `cksum`: zlib's CRC of the bytes and their number, each with its bits mirrored."""
    length = len(data).to_bytes((len(data).bit_length() + 7) // 8, "little")
    mirrored = zlib.crc32((data + length).translate(_MIRRORED), 0xFFFFFFFF)
    return str(int(f"{mirrored:032b}"[::-1], 2))


def refuse(mistakes: Iterable[Mistake], hint: str = "") -> None:
    """Raises all mistakes as one error, in the order of the file; returns if there are none."""
    ordered = sorted(dict.fromkeys(mistakes), key=lambda m: (m.file, m.line or 0))
    if not ordered:
        return
    more = len(ordered) - MOST_MISTAKES
    if more > 0:
        ordered[MOST_MISTAKES:] = [Mistake(ordered[0].file, None, f"… and {more} more mistakes")]
    raise InputErrors(ordered, hint)


def shown(text: str, most: int = 60) -> str:
    """Text of an input file inside a message: quoted, short, and harmless to a terminal."""
    cut = text if len(text) <= most else text[: most - 1] + "…"
    return "'" + "".join(c if c.isprintable() else ascii(c)[1:-1] for c in cut) + "'"


def said(error: UsageError) -> str:
    """The message of an error and its hint as one sentence, for a Mistake."""
    return f"{error.message}; {error.hint}" if error.hint else error.message


def _undecodable(data: bytes) -> Iterable[tuple[int, str]]:
    """The lines that are not UTF-8, and the first wrong byte of each."""
    for number, line in enumerate(data.split(b"\n"), start=1):
        wrong = _SURROGATE.search(line.decode("utf-8", "surrogateescape"))
        if wrong:
            yield number, f"byte 0x{ord(wrong[0]) - 0xDC00:02x}"


def _why(error: Exception) -> str:
    known: dict[type[Exception], str] = {
        FileNotFoundError: "does not exist",
        IsADirectoryError: "is a directory, not a file",
        PermissionError: "may not be read by this user (permission denied)",
    }
    why = getattr(error, "strerror", None) or "that is not a file name"
    return known.get(type(error), f"cannot be read: {why}")
