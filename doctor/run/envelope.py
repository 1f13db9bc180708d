"""The JSON report of `doctor run`: the common envelope and the fields that only it has."""

from enum import Enum
from typing import ClassVar

import msgspec

from doctor.report.files.envelope import Envelope


class Whose(str, Enum):
    """Whose exit code it is that `doctor run` ends with."""

    JOB = "job"
    PREFLIGHT = "preflight"
    ENDED = "ended by doctor"
    NOT_STARTED = "not started"

    @property
    def words(self) -> str:
        if self is Whose.ENDED:
            return "doctor's, which ended the job"
        if self is Whose.NOT_STARTED:
            return "doctor's: the command could not be started"
        return f"the {'pre-flight' if self is Whose.PREFLIGHT else self.value}'s"


class JobLookEntry(msgspec.Struct, frozen=True):
    """A look at the ranks after a silence, whose result was told."""

    state: str
    says: str


class AttemptEntry(msgspec.Struct, frozen=True, kw_only=True):
    """One start of the command."""

    hosts: tuple[str, ...]
    left_out: tuple[str, ...]
    seconds: float
    exit_code: int | None
    looks: tuple[JobLookEntry, ...] = ()
    losses: tuple[str, ...] = ()
    ended: str | None = None
    elsewhere: tuple[str, ...] = ()
    by_others: str | None = None
    why: str | None = None
    folder: str | None = None


class RunPart(msgspec.Struct, frozen=True):
    """The fields that only `run` has."""

    whose: Whose
    attempts: tuple[AttemptEntry, ...]


class RunReport(Envelope, frozen=True, kw_only=True):
    """`doctor run`. Its findings are those of the pre-flight, of `hang` and of `logs`; the exit code may be
    that of the command.
    """

    KEY: ClassVar[str] = "around"

    around: RunPart
