"""How fast a device runs at one moment, and what holds its clock down, as its vendor's tool says it."""

from dataclasses import dataclass

from doctor.text.hostprogram import sections

SLOWDOWNS = sections(__file__, "slowdowns.txt")


@dataclass(frozen=True, slots=True)
class DevicePace:
    """None if the tool does not say it."""

    mhz: int | None = None
    """The clock of its cores."""
    most_mhz: int | None = None
    watts: int | None = None
    celsius: int | None = None
    busy: int | None = None
    """In per cent. On NVIDIA and AMD GPUs a kernel that waits for other ranks counts as busy."""
    idle: bool = False
    """Whether the tool says that the clock is low because there is no work."""
    reasons: tuple[str, ...] = ()
    """What holds the clock down: "hardware thermal slowdown"."""
