"""Facts about the run itself rather than one host: unreachable hosts, and the mesh."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from doctor.api import RunValue
from doctor.mesh import MeshResult
from doctor.model import UnreachedHost


@dataclass(frozen=True, slots=True)
class PartialAnswer:
    """An incomplete answer: the facts that it lacks, and why."""

    facts: tuple[str, ...]
    reason: str


UNREACHED: RunValue[Mapping[str, UnreachedHost | None]] = RunValue("unreached")
"""Host -> why it could not be asked; None if it answered."""

ANSWERED: RunValue[tuple[str, ...]] = RunValue("answered", of_hosts=True)
"""The hosts that answered the first round, in the order of the run."""

CUT_OFF: RunValue[Mapping[str, PartialAnswer | None]] = RunValue("cut-off", of_hosts=True)

MESH: RunValue[MeshResult] = RunValue("mesh", of_hosts=True)
"""Who reached whom in the mesh; missing if no mesh was run."""

OFFERED: RunValue[MeshResult] = RunValue("offered", of_hosts=True)
"""Who reaches the addresses that ranks would offer, for hosts where these are not the data addresses."""


@dataclass(frozen=True, slots=True)
class Offset:
    """Seconds ahead of our clock: between `low` and `high`, after it `jump`ed during the examination."""

    low: float
    high: float
    jump: float = 0.0

    def apart(self, other: Offset) -> float:
        """By how much the two differ for certain; negative if this one is behind."""
        if self.low > other.high:
            return self.low - other.high
        return min(self.high - other.low, 0.0)


CLOCKS: RunValue[Mapping[str, Offset | None]] = RunValue("clocks", of_hosts=True)
"""Host -> how far its clock is ahead; None if the clock could not be read."""
