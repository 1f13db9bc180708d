"""What is found out about the end of a command, or about its losses, as data."""

from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True, slots=True)
class EndReason:
    """What `explain` says about the end."""

    named: bool
    says: str
    text: str = ""
    files: dict[str, bytes] = field(default_factory=dict)
    cause: str = ""
    """The id of the symptom, or what happened in a few words."""
    blamed: tuple[str, ...] = ()
    """The hosts that caused it, if they themselves show that and it is not the script's own fault."""
    failed: bool = False
    """Whether the command failed by itself, for sure: being told to end is not a failure."""


@dataclass(frozen=True, slots=True)
class PastCommand:
    """A command that is over. It began at `began`, in seconds since 1970. `killed`: KILL ended it. Its ranks
    may have `printed_into` files: patterns. In `parts` instances on other hosts keep their output.
    """

    began: float
    seconds: float
    killed: bool
    printed_into: tuple[str, ...] = ()
    parts: Path | None = None


@dataclass(frozen=True, slots=True)
class LossLook:
    """What is wrong with the losses that were printed so far, each in a sentence."""

    says: tuple[str, ...]
    why: EndReason | None = None
    """The report, if one of them was not told before."""
    lasts: bool = False
    """Whether no line shows that the losses are sound after all, since the places that were named."""
