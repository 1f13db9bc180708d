"""The JSON report of `history`: the envelope of all commands, and the fields that only `history` has."""

from typing import ClassVar

import msgspec

from doctor.report.files.envelope import Envelope


class CheckHistory(msgspec.Struct, kw_only=True):
    """What one check found on a machine."""

    first: str
    """When it failed first."""
    last: str
    """When it failed last."""
    runs: int = 0
    """The runs in which it failed."""
    returns: int = 0
    """How often it came back within a week."""


class Machine(msgspec.Struct, kw_only=True):
    """A machine that a run examined, or because of which a job ended."""

    name: str
    """Its latest name."""
    names: list[str]
    """All its names."""
    serial: str | None = None
    """Its serial number; null if no run says it."""
    runs: int = 0
    """The runs that decided about it."""
    faulty: int = 0
    """Those in which it was faulty."""
    undecided: int = 0
    """The runs that did not decide about it."""
    days: dict[str, bool] = {}
    """The days on which a run decided about it, and whether it was faulty on them."""
    checks: dict[str, CheckHistory] = {}
    """What was found on it, by check."""
    fell: dict[str, int] = {}
    """Check -> the days on which it made the machine faulty; only checks that accuse a machine."""
    looked: dict[str, int] = {}
    """Check -> the days on which it could have done so."""
    ended: dict[str, int] = {}
    """How many jobs ended because of it, by the reason."""
    expected: float = 0.0
    """The days in `fell` that chance gives it."""
    chance: float = 1.0
    """How likely chance gives any machine of the fleet so many as it has."""
    suspect: bool = False
    """Whether it is a usual suspect: chance is below one in a thousand."""


class HistoryPart(msgspec.Struct, frozen=True, kw_only=True):
    """The fields that only `history` has."""

    folders: tuple[str, ...]
    """The folders that were read."""
    runs: int
    """The runs that examined hosts."""
    jobs: int
    """The ends of jobs that are explained."""
    first: str
    """When the first run began."""
    last: str
    """When the last run began."""
    machines: tuple[Machine, ...]
    """Each machine; the most often faulty first."""
    passed_over: dict[str, str]
    """The files that were passed over, and why."""
    open_to_others: tuple[str, ...]
    """Folders into which others could have put runs, and whose these are."""


class HistoryReport(Envelope, frozen=True, kw_only=True):
    """`doctor history`. It has no findings of today."""

    KEY: ClassVar[str] = "history"

    history: HistoryPart
    """The fields that only `history` has."""
