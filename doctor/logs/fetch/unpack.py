"""A host's answer -> files in a folder here. The host may be hostile: no name leads out of its folder."""

from __future__ import annotations

import base64
import binascii
import re
import zlib
from dataclasses import dataclass
from pathlib import Path

from doctor.model import Answer, AnswerEnd
from doctor.probe.frames import FRAME
from doctor.text.printable import clean_line

MOST_FILES = 6000
MOST_BYTES = 1 << 30
"""Of one host, unpacked: more than the limit of any host."""
_ODD = re.compile(r"[^\w.+,@=-]")


@dataclass(frozen=True, slots=True)
class Taken:
    """What came of a host: where each file lies here -> its name there; and what was left out."""

    files: dict[Path, str]
    left_out: tuple[str, ...] = ()

    @property
    def missed(self) -> tuple[str, ...]:
        """What of that may complain. Of a long log the end was read; those of the host are for root."""
        own = re.compile(r"/var/log/\S*: may not be read")
        return tuple(why for why in self.left_out if "only the last " not in why and not own.match(why))


def unpack(answer: Answer, token: str, folder: Path) -> Taken:
    """Into a new folder. Raises OSError if that cannot be written."""
    mark = token[:FRAME].encode()
    kind, data = _body(answer.stdout, mark)
    raw, whole = (_unpacked(data) if kind == b"packed" else (data, True)) if kind else (b"", False)
    left: list[str] = []
    files: dict[Path, str] = {}
    ended = False
    folder.mkdir(mode=0o700, parents=True)
    for head, body in _frames(raw, mark):
        letter, _, words = head.partition(b" ")
        text = clean_line(words.decode("utf-8", "replace"))
        if letter == b"x":
            left.append(text)
        elif letter == b"z":
            ended = True
        elif letter == b"f" and len(files) < MOST_FILES:
            path = _place(folder, text, len(files))
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            path.write_bytes(body)
            files[path] = text
    if not ended or not whole:
        left.append(_why(answer))
    return Taken(files, tuple(left))


def _why(answer: Answer) -> str:
    reasons = {
        AnswerEnd.TIMEOUT: "its time was over before all logs had come (--timeout)",
        AnswerEnd.FLOOD: "there was more than one answer can hold: name fewer files (--path, --since)",
    }
    return reasons.get(answer.end, "its answer broke off")


def _body(stdout: bytes, mark: bytes) -> tuple[bytes, bytes]:
    """What the host printed behind our first line; login files may have printed before."""
    found = re.search(rb"\n" + re.escape(mark) + rb" (packed|plain)\n", b"\n" + stdout)
    return (found[1], (b"\n" + stdout)[found.end() :]) if found else (b"", b"")


def _unpacked(data: bytes) -> tuple[bytes, bool]:
    """As far as it goes, and whether it was whole."""
    text = re.sub(rb"[^A-Za-z0-9+/=]", b"", data.partition(b"\n\n")[0])
    try:
        packed = base64.b64decode(text[: len(text) // 4 * 4])
    except binascii.Error:
        return b"", False
    unpacker = zlib.decompressobj(wbits=31)
    try:
        raw = unpacker.decompress(packed, MOST_BYTES)
    except zlib.error:
        return b"", False
    return raw, unpacker.eof


def _frames(raw: bytes, mark: bytes) -> list[tuple[bytes, bytes]]:
    """Each begins behind a line end that is not of the file before."""
    parts = (b"\n" + raw).split(b"\n" + mark + b" ")[1:]
    return [(head, body) for part in parts for head, _, body in [part.partition(b"\n")]]


def _place(folder: Path, name: str, number: int) -> Path:
    """The folders as on the host, since they tell who wrote a file."""
    parts = [_ODD.sub("_", part)[:120] for part in name.split("/") if part not in ("", ".", "..")][-12:]
    path = folder.joinpath(*(parts or [f"file-{number}"]))
    clash = path.exists() or any(parent.is_file() for parent in path.parents)
    return folder / f"{number}-{path.name}" if clash else path
