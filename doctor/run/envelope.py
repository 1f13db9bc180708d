"""The JSON report of `doctor run`: the common envelope and the fields that only it has."""

from typing import ClassVar

import msgspec

from doctor.report.files.envelope import Envelope
from doctor.run.whose import Whose


class JobLookEntry(msgspec.Struct, frozen=True):
    """A look at the ranks after a silence, whose result was told."""

    state: str
    """What `doctor hang` says: `hang`, `unknown`, `no job` and so on; `failed` if it could not look."""
    says: str
    """The same in a sentence."""


class AttemptEntry(msgspec.Struct, frozen=True, kw_only=True):
    """One start of the command."""

    hosts: tuple[str, ...]
    """The hosts on which it was started, if they are known."""
    left_out: tuple[str, ...]
    """The hosts that must not take part, as the pre-flight says."""
    seconds: float
    """How long it took."""
    exit_code: int | None
    """Its own exit code, as a shell says it; null if it was not started."""
    looks: tuple[JobLookEntry, ...] = ()
    """What was told about standstills."""
    losses: tuple[str, ...] = ()
    """What was told about losses, in sentences."""
    ended: str | None = None
    """Why doctor ended it; null if it did not."""
    elsewhere: tuple[str, ...] = ()
    """What still ran, here and on other hosts, after doctor had ended it, each in a sentence."""
    by_others: str | None = None
    """Who else ended it: a signal, or a scheduler and its reason; null if nobody did."""
    why: str | None = None
    """Why it ended, in a sentence; null if nothing was to be explained."""
    folder: str | None = None
    """The folder with its reports and its output; null if there is none."""


class RunPart(msgspec.Struct, frozen=True):
    """The fields that only `run` has."""

    whose: Whose
    """Whose exit code it is: that of the `job`, of the `preflight`, or doctor's own: `ended by doctor`, or
    `not started`.
    """
    attempts: tuple[AttemptEntry, ...]
    """Each start of the command; empty if the pre-flight forbade it."""


class RunReport(Envelope, frozen=True, kw_only=True):
    """`doctor run`. Its findings are those of the pre-flight, of `hang` and of `logs`; the exit code may be
    that of the command.
    """

    KEY: ClassVar[str] = "around"

    around: RunPart
    """The fields that only `run` has."""
