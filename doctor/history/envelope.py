"""The JSON report of `history`: the envelope of all commands, and the fields that only `history` has."""

from typing import ClassVar

import msgspec

from doctor.report.files.envelope import Envelope


class CheckHistory(msgspec.Struct, kw_only=True):
    """What one check found on a machine."""

    first: str
    last: str
    runs: int = 0
    returns: int = 0


class Called(msgspec.Struct, kw_only=True, frozen=True):
    """What a machine is called after enough runs in a row that say the same."""

    faulty: bool
    since: str
    checks: tuple[str, ...]


class Machine(msgspec.Struct, kw_only=True):
    """A machine that a run examined, or because of which a job ended."""

    name: str
    names: list[str]
    serial: str | None = None
    runs: int = 0
    faulty: int = 0
    undecided: int = 0
    days: dict[str, bool] = {}
    checks: dict[str, CheckHistory] = {}
    fell: dict[str, int] = {}
    looked: dict[str, int] = {}
    ended: dict[str, int] = {}
    expected: float = 0.0
    chance: float = 1.0
    suspect: bool = False
    called: Called | None = None


class ShadowedHost(msgspec.Struct, kw_only=True):
    """What a gate in the shadow (`--shadow`) would have drained."""

    name: str
    runs: int = 0
    first: str = ""
    last: str = ""
    drained: int = 0
    wrong: int = 0
    checks: dict[str, int] = {}


class HistoryPart(msgspec.Struct, frozen=True, kw_only=True):
    """The fields that only `history` has."""

    folders: tuple[str, ...]
    runs: int
    jobs: int
    first: str
    last: str
    machines: tuple[Machine, ...]
    shadow: tuple[ShadowedHost, ...]
    passed_over: dict[str, str]
    open_to_others: tuple[str, ...]
    fail_after: int
    clear_after: int
    withheld: tuple[str, ...]


class HistoryReport(Envelope, frozen=True, kw_only=True):
    """`doctor history`. It has no findings of today."""

    KEY: ClassVar[str] = "history"

    history: HistoryPart
