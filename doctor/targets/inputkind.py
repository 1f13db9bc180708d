"""Detect the kind of an input file from its contents, to help when it was given to the wrong option.

Only certain results are returned. A log, or a file with mistakes in it, has none of these kinds.
"""

from __future__ import annotations

import re
import shlex
from enum import Enum
from pathlib import Path

import msgspec

from doctor.errors import InputErrors, Mistake

MOST = 2_000_000
"""How many characters are examined."""


class InputKind(Enum):
    """The name of the kind, and the command that takes such a file."""

    RANK_TABLE = ("a rank table", "doctor ranktable check {}")
    HOSTFILE = ("a hostfile", "doctor check --hostfile {}")
    INVENTORY = ("an inventory", "doctor check --inventory {}")
    RECORDING = ("a recording of a run", "doctor check --replay {}")
    HANG = ("a recording of `doctor hang`", "doctor hang --replay {}")
    REPORT = ("a report as JSON", "doctor check --replay RUN.json, with the recording of --save")

    @property
    def called(self) -> str:
        return self.value[0]

    def command(self, path: str) -> str:
        return self.value[1].format(shlex.quote(path))


_BLANK = "\ufeff \t\r\n"
_TABLE_KEYS = {"server_list", "group_list", "rank_list", "para_plane_nic_location"}
_HOST = r"(?:[A-Za-z0-9_.@\\-]+|\[[0-9a-fA-F:]+\]|[\w.-]*\[[\d,-]+\][\w.-]*)"
_HOST_LINE = re.compile(
    rf"{_HOST}(?P<slots>:\d{{1,4}}|(?:[ \t]+(?:slots|max[_-]slots|cpus?|ifhn|user)[ \t]*=[ \t]*\S+)+)?[ \t]*"
)
_NUMBERED = re.compile(r"(?:.*\d|localhost)")
_FILE_OF_HOSTS = re.compile(r"hosts?|machine|nodes?(?![a-z])", re.IGNORECASE)
_INVENTORY_KEY = re.compile(r"^(?:hosts|groups|defaults):[ \t]*(?:\{.*|\[.*|#.*)?$", re.MULTILINE)
_LOG_LINE = re.compile(r"^\[|\b\d\d:\d\d:\d\d\b|^Traceback ", re.MULTILINE)


def input_kind(text: str, name: str = "") -> InputKind | None:
    """The kind of a file with this text; None if uncertain. `name` is the name of the file."""
    head = text[:MOST].lstrip(_BLANK)
    if head.startswith("{"):
        return _of_json(text.lstrip(_BLANK))
    if _INVENTORY_KEY.search(head) and not _LOG_LINE.search(head):
        return InputKind.INVENTORY
    return InputKind.HOSTFILE if _lists_hosts(head, name) else None


def _of_json(text: str) -> InputKind | None:
    try:
        keys = set(msgspec.json.decode(text, type=dict[str, msgspec.Raw]))
    except (msgspec.DecodeError, RecursionError, UnicodeEncodeError):
        found = re.search(r'"(?:server_list|group_list)"\s*:', text[:MOST])
        return InputKind.RANK_TABLE if found else None
    if keys & _TABLE_KEYS:
        return InputKind.RANK_TABLE
    if {"schema", "wishes", "heard"} <= keys:
        return InputKind.RECORDING
    if {"started", "hosts", "asked"} <= keys and "schema" in keys:
        return InputKind.HANG
    return InputKind.REPORT if {"schema", "findings", "verdict"} <= keys else None


def _lists_hosts(head: str, name: str) -> bool:
    """Whether the lines are hosts. Plain words count only if slots, the file's name or numbers confirm it."""
    lines = [line.partition("#")[0].strip() for line in head.splitlines()]
    found = [_HOST_LINE.fullmatch(line) for line in lines if line]
    if not found or not all(found):
        return False
    called = _FILE_OF_HOSTS.search(Path(name).name) is not None
    counted = any(each and each["slots"] for each in found)
    words = [line.split()[0] for line in lines if line]
    alike = all(_NUMBERED.fullmatch(word) and not word.replace(".", "").isdigit() for word in words)
    return called or counted or (alike and len(words) > 1)


class OtherKind(Mistake):
    """A mistake that is printed as one sentence about a file."""

    def __str__(self) -> str:
        return f"{self.file} {self.message}"


def refuse_other(path: str, text: str, *wanted: InputKind) -> None:
    """One sentence and the right command if the file is clearly of another kind. Raises InputErrors."""
    kind = input_kind(text, path)
    if kind is not None and kind not in wanted:
        raise InputErrors([OtherKind(path, None, f"is {kind.called}. Type: {kind.command(path)}")])
