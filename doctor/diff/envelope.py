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
    """Its file."""
    started: str
    """When it began."""
    hosts: tuple[str, ...]
    """Its hosts."""


class ChangeEntry(msgspec.Struct, frozen=True, kw_only=True):
    """What has become of a finding."""

    state: ChangeKind
    """`new`, `gone`, `still there`, `not decided` (by the later run) or `not looked at before`."""
    check: str | None
    """The check that found it."""
    status: Status
    """`fail` or `warn`."""
    subject: str | None
    """The part that is at fault."""
    hosts: tuple[str, ...]
    """The hosts of which this is true; empty if no host is guilty."""
    summary: str
    """What is wrong, in a sentence."""
    why: str | None
    """Why one of the runs did not decide it."""


class FactChangeEntry(msgspec.Struct, frozen=True, kw_only=True):
    """A fact that changed in the same way on some hosts."""

    key: str
    """The fact, as in the facts of a host."""
    before: str
    """Its value in the earlier run, in words."""
    after: str
    """Its value in the later run."""
    hosts: tuple[str, ...]
    """The hosts."""
    worse: bool
    """Whether the hosts have less of what they need."""


class DiffPart(msgspec.Struct, frozen=True, kw_only=True):
    """The fields that only `diff` has."""

    before: RunEntry
    """The earlier run, which was named first."""
    after: RunEntry
    """The later run."""
    changes: tuple[ChangeEntry, ...]
    """What has become of each finding, worst first."""
    facts: tuple[FactChangeEntry, ...]
    """The facts that changed."""
    added: tuple[str, ...]
    """Hosts of the later run alone."""
    removed: tuple[str, ...]
    """Hosts of the earlier run alone."""


class DiffReport(Envelope, frozen=True, kw_only=True):
    """`doctor diff`: its findings are those that are new."""

    KEY: ClassVar[str] = "diff"

    diff: DiffPart
    """The fields that only `diff` has."""
