"""Pieces of a stream that end at a line end: UTF-8, without NULs and terminal escapes.

JSON lines of docker and journald become the lines that were written, with their time and host. One line stays
one line, so that line numbers stay those of the file.
"""

import codecs
import json
import re
from collections.abc import Iterator
from datetime import datetime, timezone
from itertools import pairwise
from typing import Any

from doctor.logs.sources.kind import HEAD, wide
from doctor.logs.sources.limits import CHUNK, DamagedInput
from doctor.logs.sources.stream import PeekStream

_DOCKER = b'{"log":"'
_NUMBER = re.compile(rb"(?m)^((?:[\w./@+-]{1,200}?[:-])??)(\d{1,9})[:-](?!\d(?!\d{3}-)| \S)")
_TIME, _MESSAGE = "__REALTIME_TIMESTAMP", "MESSAGE"


def is_wrapped(head: bytes) -> bool:
    """Whether the first line of a file is such a JSON line."""
    line = head.lstrip().partition(b"\n")[0]
    return line.startswith(_DOCKER) or (line.startswith(b"{") and f'"{_TIME}"'.encode() in line)


def is_numbered(head: bytes) -> bool:
    """Whether `grep -n` wrote a number in front of nearly all lines; numbers of one file grow."""
    lines = head.split(b"\n")[:-1] or [head]
    found = [each.groups() for each in map(_NUMBER.match, lines) if each]
    found.sort(key=lambda each: each[0])
    grow = all(name != other or int(one) < int(two) for (name, one), (other, two) in pairwise(found))
    return grow and len(found) > 2 and len(found) >= len(lines) * 0.8


def unwrapped(data: bytes) -> bytes:
    """The data with JSON lines unwrapped; any other line stays as it is."""
    return b"\n".join(_line(line) for line in data.split(b"\n"))


def _line(line: bytes) -> bytes:
    if not line.startswith(b"{"):
        return line
    try:
        said = json.loads(line)
    except (ValueError, RecursionError):
        return line
    text = _docker(said) if "log" in said else _journal(said)
    return line if text is None else " ".join(text.splitlines()).encode("utf-8", "replace")


def _docker(said: dict[str, Any]) -> str | None:
    time, text = said.get("time", ""), said["log"]
    return f"{time} {text}" if isinstance(text, str) and isinstance(time, str) else None


def _journal(said: dict[str, Any]) -> str | None:
    """The line as `journalctl -o short-iso-precise` writes it."""
    message = said.get(_MESSAGE)
    if isinstance(message, list):  # bytes that are not text
        try:
            message = bytes(message).decode("utf-8", "replace")
        except (TypeError, ValueError):
            return None
    if not isinstance(message, str):
        return None
    try:
        at = datetime.fromtimestamp(int(said[_TIME]) / 1e6, timezone.utc)
    except (KeyError, TypeError, ValueError, OverflowError, OSError):
        return None
    tag, pid = said.get("SYSLOG_IDENTIFIER") or said.get("_COMM") or "-", said.get("_PID")
    by = "kernel" if said.get("_TRANSPORT") == "kernel" else f"{tag}[{pid}]" if pid else tag
    return f"{at:%Y-%m-%dT%H:%M:%S.%f}+0000 {said.get('_HOSTNAME', '-')} {by}: {message}"


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
    wrapped = is_wrapped(head.removeprefix(codecs.BOM_UTF8))
    plain = (lambda data: _plain(unwrapped(data).replace(b"\x00", b""))) if wrapped else _plain
    plain = (lambda data: _plain(_NUMBER.sub(rb"\1", data))) if is_numbered(head) else plain
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


def _plain(data: bytes) -> bytes:
    data = _ESCAPES.sub(b"", data) if b"\x1b" in data else data
    return _LONG.sub(rb"\1", data) if _has_long(data) else data


def _has_long(data: bytes) -> bool:
    at = 0
    while len(data) - at > LONGEST and (end := data.rfind(b"\n", at, at + LONGEST + 1)) >= 0:
        at = end + 1
    return len(data) - at > LONGEST
