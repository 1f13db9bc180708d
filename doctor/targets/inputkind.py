"""The kind of an input file by its contents, if it is certain: it may belong to another option."""

import re
import shlex
from enum import Enum
from pathlib import Path

import msgspec

from doctor.errors import InputErrors, Mistake
from doctor.text.late import late

MOST = 2_000_000
"""The most characters that are examined."""


class InputKind(Enum):
    """The name of the kind, and the command that takes such a file."""

    RANK_TABLE = ("a rank table", "doctor ranktable check {}")
    HOSTFILE = ("a hostfile", "doctor check --hostfile {}")
    INVENTORY = ("an inventory", "doctor check --inventory {}")
    RECORDING = ("a recording of a run", "doctor check --replay {}")
    HANG = ("a recording of `doctor hang`", "doctor hang --replay {}")
    SLOW = ("a recording of `doctor slow`", "doctor slow --replay {}")
    REPORT = ("a report as JSON", "doctor check --replay RUN.json, with the recording of --save")
    BASELINE = ("a baseline", "doctor check HOSTS --baseline {}")
    ANSIBLE = (
        "an Ansible inventory",
        "doctor check -F <(ansible all -i {} --list-hosts | sed 1d), or give the names alone, one a line, "
        "without [group] lines",
    )

    @property
    def called(self) -> str:
        return self.value[0]

    def command(self, path: str) -> str:
        return self.value[1].format(shlex.quote(path))


_BLANK = "\ufeff \t\r\n"
_TABLE_KEYS = {"server_list", "group_list", "rank_list", "para_plane_nic_location"}
_HOST = r"(?:[A-Za-z0-9_.@\\-]+|\[[0-9a-fA-F:]+\]|[\w.-]*\[[\d,-]+\][\w.-]*)"
_HOST_LINE = late(
    rf"{_HOST}(?P<slots>:\d{{1,4}}|(?:[ \t]+(?:slots|max[_-]slots|cpus?|ifhn|user)[ \t]*=[ \t]*\S+)+)?[ \t]*"
)
_NUMBERED = late(r"(?:.*\d|localhost)")
_FILE_OF_HOSTS = late(r"hosts?|machine|nodes?(?![a-z])", re.IGNORECASE)
_INVENTORY_KEY = late(r"^(?:hosts|groups|defaults):[ \t]*(?:\{.*|\[.*|#.*)?$", re.MULTILINE)
_ANSIBLE_YAML = late(
    r"^(?!hosts|groups|defaults|launch|plan|expect)[\w.-]+:(?:[ \t]*\{[ \t]*(?:hosts|children)\b|"
    r"[ \t]*\n(?:[ \t].*\n|#.*\n|\n)*?[ \t]+(?:hosts|children):[ \t]*(?:\{.*)?$)",
    re.MULTILINE,
)
_GROUP_LINE = late(r"\[[\w.-]+(?::(?:children|vars))?\]")
_ANSIBLE_LINE = late(rf"(?:{_HOST}|[\w.:\[\]-]+)(?:[ \t]+\w+=.*)?|\w+[ \t]*=.*")
_ANSIBLE_VARIABLE = late(r"\bansible_\w+[ \t]*=")
_INVENTORY_KEYS = {
    *("hosts", "groups", "defaults", "backend", "head", "master_port", "ranks_per_host", "launch", "plan"),
    "expect",
}
_LOG_LINE = late(r"^\[|\b\d\d:\d\d:\d\d\b|^Traceback ", re.MULTILINE)


def input_kind(text: str, name: str = "") -> InputKind | None:
    """The kind of a file with this text; None if uncertain. `name` is the name of the file."""
    head = text[:MOST].lstrip(_BLANK)
    if head.startswith("{"):
        return _of_json(text.lstrip(_BLANK))
    if re.search("^doctor: baseline$", head, re.MULTILINE):
        return InputKind.BASELINE
    if _ANSIBLE_YAML.search(head) and not _LOG_LINE.search(head):
        return InputKind.ANSIBLE
    if _INVENTORY_KEY.search(head) and not _LOG_LINE.search(head):
        return InputKind.INVENTORY
    if _lists_hosts(head, name):
        return InputKind.HOSTFILE
    lines = [line for line in map(_without_comment, head.splitlines()) if line]
    return InputKind.ANSIBLE if _is_ansible(lines, head) else None


def _without_comment(line: str) -> str:
    return "" if line.lstrip().startswith(";") else line.partition("#")[0].strip()


def _is_ansible(lines: list[str], head: str) -> bool:
    """Whether it is an inventory of Ansible as INI."""
    groups = sum(_GROUP_LINE.fullmatch(line) is not None for line in lines)
    rest = [line for line in lines if not _GROUP_LINE.fullmatch(line)]
    return bool(
        (groups or _ANSIBLE_VARIABLE.search(head)) and rest and all(map(_ANSIBLE_LINE.fullmatch, rest))
    )


def _of_json(text: str) -> InputKind | None:
    try:
        keys = set(msgspec.json.decode(text, type=dict[str, msgspec.Raw]))
    except (msgspec.DecodeError, RecursionError, UnicodeEncodeError):
        return InputKind.RANK_TABLE if re.search(r'"(?:server_list|group_list)"\s*:', text[:MOST]) else None
    if {"_meta", "all"} <= keys:
        return InputKind.ANSIBLE
    if keys & _TABLE_KEYS:
        return InputKind.RANK_TABLE
    if {"schema", "wishes", "heard"} <= keys:
        return InputKind.RECORDING
    if {"started", "hosts", "asked"} <= keys and "schema" in keys:
        return InputKind.HANG
    if {"schema", "findings", "verdict"} <= keys:
        return InputKind.REPORT
    return InputKind.INVENTORY if "hosts" in keys and keys <= _INVENTORY_KEYS else None


def _lists_hosts(head: str, name: str) -> bool:
    """Whether the lines are hosts. Plain words count only if slots, the file's name or numbers confirm it."""
    lines = [line for line in map(_without_comment, head.splitlines()) if line]
    found = [_HOST_LINE.fullmatch(line) for line in lines]
    if not found or not all(found):
        return False
    called = _FILE_OF_HOSTS.search(Path(name).name) is not None
    counted = any(each and each["slots"] for each in found)
    words = [line.split()[0] for line in lines]
    alike = all(_NUMBERED.fullmatch(word) and not word.replace(".", "").isdigit() for word in words)
    return called or counted or (alike and len(words) > 1)


class OtherKind(Mistake):
    """A mistake that is printed as one sentence about a file."""

    def __str__(self) -> str:
        return f"{self.file} {self.message}"


def refuse_other(path: str, text: str, *wanted: InputKind) -> None:
    """Raises InputErrors with one sentence and the right command if the file is surely of another kind."""
    kind = input_kind(text, path)
    if kind is not None and kind not in wanted:
        raise InputErrors([OtherKind(path, None, f"is {kind.called}. Type: {kind.command(path)}")])
