"""Pieces of a stream that end at a line end: UTF-8, without NULs and terminal escapes."""

import codecs
import re
from collections.abc import Iterator

from doctor.logs.sources.json_lines import is_wrapped, unwrapped
from doctor.logs.sources.kind import HEAD, wide
from doctor.logs.sources.limits import CHUNK, DamagedInput
from doctor.logs.sources.stream import PeekStream

_NULS = bytes(CHUNK)
LONGEST = CHUNK // 16
"""The most bytes of a line that are passed on; a progress bar writes many lines over one another."""
_END = re.compile(rb"[\n\r]")
_LONG = re.compile(rb"(?<![^\n\r])([^\n\r]{%d})[^\n\r]+" % LONGEST)
_ESCAPES = re.compile(
    rb"\x1b(?:\[[0-9;:?]{0,32}[ -/]?[@-~]|\][^\x07\x1b\n]{0,256}(?:\x07|\x1b\\)|[()][0-9A-B]|[=>78cM])"
)


def pieces(stream: PeekStream) -> Iterator[bytes]:
    """The pieces of a stream; overlong lines are cut. An error of reading is raised after the last piece."""
    head = stream.peek(HEAD)
    encoding = wide(head)
    decoder = codecs.getincrementaldecoder(encoding)(errors="replace") if encoding else None
    plain = _unwrapped if is_wrapped(head.removeprefix(codecs.BOM_UTF8)) else _plain
    rest = b""
    first = True
    cut = False
    try:
        while data := stream.read(CHUNK):
            if data == _NULS[: len(data)]:
                stream.skip_hole()
                continue
            if decoder:
                data = decoder.decode(data).encode("utf-8", "replace")
            if first:
                data = data.removeprefix(codecs.BOM_UTF8)
                first = False
            data = rest + data.replace(b"\x00", b"")
            if cut:  # in the middle of a line that was cut
                data = data[_line_end(data) :]
                cut = not data
            end = data.rfind(b"\n") + 1
            if not end and len(data) >= CHUNK:
                end = data.rfind(b"\r") + 1
                cut = not end
                end = end or len(data)
            rest = data[end:]
            if end:
                yield plain(data[:end])
    except DamagedInput:
        if rest:
            yield plain(rest)
        raise
    if rest:
        yield plain(rest)


def _line_end(data: bytes) -> int:
    """Where the first line ends; its line end stays, so that lines can be counted."""
    found = _END.search(data)
    return found.start() if found else len(data)


def _unwrapped(data: bytes) -> bytes:
    return _plain(unwrapped(data).replace(b"\x00", b""))


def _plain(data: bytes) -> bytes:
    data = _ESCAPES.sub(b"", data) if b"\x1b" in data else data
    return _LONG.sub(rb"\1", data) if max(map(len, data.split(b"\n"))) > LONGEST else data
