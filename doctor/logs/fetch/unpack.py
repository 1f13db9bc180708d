"""Writes the logs in a host's answer to a folder here, piece by piece.

The host may be hostile: no name leads out of its folder, and the limits on bytes, lines, files and folders
are enforced here. Only a full disk here ends the run; any other fault concerns this host alone.
"""

import base64
import binascii
import contextlib
import errno
import json
import re
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from doctor.logs.fetch.onhost.agent import HEADS, KERNEL_BYTES, MOST_FILES, PIECE
from doctor.model import Answer, AnswerEnd
from doctor.probe.frames import FRAME
from doctor.text.printable import clean_line

MOST_FOLDERS = 5000
MOST_WORDS = 100
"""The most reasons kept for one host: only a hostile or an almost unreadable host gives more."""
LONGEST_WORD = 1000
LONGEST_LINE = 64 * 1024
DEEPEST = 12
LONGEST_PART = 120
"""The most bytes of a file or folder name here."""
NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EROFS)
TOO_MUCH = "its answer was longer than requested, and only its beginning counts"
UNREADABLE = "its answer cannot be unpacked, and only its beginning counts"
_ODD = re.compile(r"[^\w.+,@=-]")
_NO_BYTE = re.compile("[\ud800-\udc7f\udd00-\udfff]")
"""Surrogates that do not stand for a byte of a name."""
_NONE = re.compile(rb'(?:^|\n)\{"say":"none","detail":"([^"\n]{1,200})"\}')


@dataclass(frozen=True, slots=True)
class HostLogs:
    """The logs from one host: the path of each file here with its name there, and what was left out."""

    files: dict[Path, str]
    missed: tuple[str, ...] = ()
    """Logs that may hold complaints and could not be read."""
    told: tuple[str, ...] = ()
    """Notes, such as: only the end of a long log was read; the host's own logs are for root."""


class _BadAnswer(Exception):
    """An answer is wrong; str() says why."""


def unpack(answer: Answer, token: str, folder: Path, limit: int) -> HostLogs:
    """Write the logs to a new folder; `limit` is that of the request. Raises OSError if the disk is full."""
    folder.mkdir(mode=0o700, parents=True)
    kept, wrong = _RecordReader(folder, limit), ""
    most = limit + HEADS + KERNEL_BYTES + 16 * _most_pieces(limit)
    try:
        with contextlib.closing(kept):
            for piece in _raw(answer.stdout, token[:FRAME].encode(), most):
                kept.feed(piece)
        if not kept.ended:
            raise _BadAnswer(_why(answer))
    except _BadAnswer as error:
        wrong = str(error)
    except OSError as error:
        if error.errno in NO_ROOM:
            raise
        wrong = f"its logs could not be kept here: {error.strerror}"
    return HostLogs(kept.files, (*_few(kept.missed), *([wrong] if wrong else [])), _few(kept.told))


def _most_pieces(limit: int) -> int:
    return (limit + KERNEL_BYTES) // PIECE + 2 * MOST_FILES


def _few(words: list[str]) -> tuple[str, ...]:
    more = len(words) - MOST_WORDS
    return (*words[:MOST_WORDS], *((f"{more} more were left out",) if more > 0 else ()))


def _why(answer: Answer) -> str:
    if none := _NONE.search(answer.stdout):
        said = clean_line(none[1].decode("utf-8", "replace"))
        return f"{said}, which reads logs safely: say where it is with --python"
    reasons = {
        AnswerEnd.TIMEOUT: "its time ran out before all logs had arrived (--timeout)",
        AnswerEnd.FLOOD: "there was more than one answer can hold: name fewer files (--path, --since)",
    }
    return reasons.get(answer.end, "its answer broke off")


def _raw(stdout: bytes, mark: bytes, most: int) -> Iterator[bytes]:
    """The output after our first line, unpacked; login scripts may have printed something before it."""
    begun = re.search(rb"(?:^|\n)" + re.escape(mark) + rb" packed\n", stdout)
    if begun is None:
        return
    unpacker = zlib.decompressobj(wbits=31)
    for packed in _decoded(stdout, begun.end()):
        while packed and not unpacker.eof:
            try:
                piece = unpacker.decompress(packed, PIECE)
            except zlib.error:
                raise _BadAnswer(UNREADABLE) from None
            packed = unpacker.unconsumed_tail
            most -= len(piece)
            if most < 0:
                raise _BadAnswer(TOO_MUCH)
            yield piece


def _decoded(stdout: bytes, start: int) -> Iterator[bytes]:
    """The decoded base64 text up to an empty line, or as far as it arrived."""
    end = stdout.find(b"\n\n", start)
    end = len(stdout) if end < 0 else end
    rest = b""
    for at in range(start, end, PIECE):
        text = rest + stdout[at : min(at + PIECE, end)].translate(None, b"\r\n")
        whole = len(text) // 4 * 4
        rest = text[whole:]
        try:
            yield base64.b64decode(text[:whole], validate=True)
        except binascii.Error:
            raise _BadAnswer(UNREADABLE) from None


class _RecordReader:
    """Reads the records (see onhost/agent.py) and writes the files."""

    def __init__(self, folder: Path, limit: int) -> None:
        self.files: dict[Path, str] = {}
        self.missed: list[str] = []
        self.told: list[str] = []
        self.ended = False
        self._folder = folder
        self._folders = {folder}
        self._begun = bytearray()
        self._awaited = 0
        self._file: BinaryIO | None = None
        self._room, self._pieces = limit + KERNEL_BYTES, _most_pieces(limit)
        self._names = self._words = 0

    def feed(self, data: bytes) -> None:
        """Raises _BadAnswer, OSError."""
        self._begun += data
        at = 0
        while at < len(self._begun) and not self.ended:
            if self._awaited:
                piece = bytes(self._begun[at : at + self._awaited])
                self._awaited -= len(piece)
                at += len(piece)
                self._write(piece)
                continue
            end = self._begun.find(b"\n", at)
            if end < 0:
                break
            self._line(bytes(self._begun[at:end]))
            at = end + 1
        del self._begun[:at]
        if len(self._begun) > LONGEST_LINE:
            raise _BadAnswer(TOO_MUCH)

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None

    def _line(self, line: bytes) -> None:
        letter, _, rest = line.partition(b" ")
        if letter == b"d" and rest.isdigit() and len(rest) < 10:
            self._awaited = int(rest)
            self._room -= self._awaited
            self._pieces -= 1
            if self._room < 0 or self._pieces < 0:
                raise _BadAnswer(TOO_MUCH)
        elif letter == b"f":
            self._begin(_text(rest))
        elif letter in (b"x", b"n"):
            self._words += 1
            if self._words > MOST_FILES:
                raise _BadAnswer(TOO_MUCH)
            (self.missed if letter == b"x" else self.told).append(clean_line(_text(rest)[:LONGEST_WORD]))
        elif letter == b"z":
            self.ended = True
        else:
            raise _BadAnswer(UNREADABLE)

    def _begin(self, name: str) -> None:
        self.close()
        self._names += 1
        if self._names > MOST_FILES + 1:  # and the kernel log
            raise _BadAnswer(TOO_MUCH)
        path = self._place(name)
        try:
            self._make(path.parent)
            self._file = open(path, "xb", buffering=0)  # noqa: SIM115
        except OSError as error:
            if error.errno in NO_ROOM:
                raise
            self.missed.append(f"{clean_line(name[:LONGEST_WORD])}: could not be kept here: {error.strerror}")
            return
        self.files[path] = clean_line(name)

    def _place(self, name: str) -> Path:
        """The path of a file here. It keeps the folders of the host, which show who wrote the file."""
        safe = (_ODD.sub("_", part).encode() for part in name.split("/") if part not in ("", ".", ".."))
        parts = [part[:LONGEST_PART].decode("utf-8", "ignore") for part in safe][-DEEPEST:]
        path = self._folder.joinpath(*(parts or [f"file-{self._names}"]))
        clash = path in self._folders or any(each in self.files for each in (path, *path.parents))
        return self._folder / f"{self._names}-{path.name}" if clash else path

    def _make(self, folder: Path) -> None:
        if folder not in self._folders:
            self._make(folder.parent)
            if len(self._folders) > MOST_FOLDERS:
                raise _BadAnswer(TOO_MUCH)
            folder.mkdir(mode=0o700)
            self._folders.add(folder)

    def _write(self, piece: bytes) -> None:
        view = memoryview(piece)
        while self._file is not None and view:
            view = view[self._file.write(view) :]


def _text(line: bytes) -> str:
    try:
        said = json.loads(line)
    except (ValueError, RecursionError):
        raise _BadAnswer(UNREADABLE) from None
    if not isinstance(said, str):
        raise _BadAnswer(UNREADABLE)
    return (
        _NO_BYTE.sub("\N{REPLACEMENT CHARACTER}", said)
        .encode("utf-8", "surrogateescape")
        .decode("utf-8", "replace")
    )
