"""Turns the JSON lines of docker and journald into the lines that were written, with their time and host.

One line stays one line, so that line numbers stay those of the file.
"""

import json
from datetime import datetime, timezone
from typing import Any

_DOCKER = b'{"log":"'
_TIME, _MESSAGE = "__REALTIME_TIMESTAMP", "MESSAGE"


def is_wrapped(head: bytes) -> bool:
    """Whether the first line of a file is such a JSON line."""
    line = head.lstrip().partition(b"\n")[0]
    journal = line.startswith(b"{") and f'"{_TIME}"'.encode() in line
    return line.startswith(_DOCKER) or journal


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
    if text is None:
        return line
    return " ".join(text.splitlines()).encode("utf-8", "replace")


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
