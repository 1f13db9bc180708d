"""The JSON report of `diff`: the envelope of all commands, and the fields that only `diff` has."""

from enum import Enum
from typing import ClassVar

import msgspec

from doctor.model import Status
from doctor.report.files.envelope import Envelope


class ChangeKind(Enum):
    NEW = "new"
    GONE = "gone"
    STILL = "still there"
    OPEN = "not decided"
    ALONE = "not looked at before"


class RunEntry(msgspec.Struct, frozen=True, kw_only=True):
    """One of the two runs."""

    file: str
    started: str
    hosts: tuple[str, ...]


class ChangeEntry(msgspec.Struct, frozen=True, kw_only=True):
    """What has become of a finding."""

    state: ChangeKind
    check: str | None
    status: Status
    subject: str | None
    hosts: tuple[str, ...]
    summary: str
    why: str | None


class FactChangeEntry(msgspec.Struct, frozen=True, kw_only=True):
    """A fact that changed in the same way on some hosts."""

    key: str
    before: str
    after: str
    hosts: tuple[str, ...]
    worse: bool


class DiffPart(msgspec.Struct, frozen=True, kw_only=True):
    """The fields that only `diff` has."""

    before: RunEntry
    after: RunEntry
    changes: tuple[ChangeEntry, ...]
    facts: tuple[FactChangeEntry, ...]
    added: tuple[str, ...]
    removed: tuple[str, ...]


class DiffReport(Envelope, frozen=True, kw_only=True):
    """`doctor diff`: its findings are those that are new."""

    KEY: ClassVar[str] = "diff"

    diff: DiffPart
