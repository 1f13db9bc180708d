"""The faults, and what `doctor hang` has to say of each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from doctor.hang.judge.judgement import Cause


@dataclass(frozen=True, slots=True)
class Kind:
    """`cause` is None where nobody is to be accused; `function` is where the victim stands."""

    cause: Cause | None
    function: str = ""
    code: int = 1
    limit: float = 2.0
    """Seconds that a job may stand still. A hang of a trial is seconds old."""
    hits: bool = True
    """It begins at a step."""
    modes: tuple[str, ...] = ("ddp", "tp", "pp")

    @property
    def looks(self) -> int:
        """At one job. Those that go on are looked at again and again: each look could accuse somebody."""
        return 5 if self.code == 0 else 1


USUAL = 60.0
KINDS: Mapping[str, Kind] = {
    "sleep": Kind(Cause.SLEEPS, "doze"),
    "spin": Kind(Cause.COMPUTES, "spin"),
    "lock": Kind(Cause.LOCK, "wait_for_lock"),
    "gil": Kind(Cause.GIL, "hold_gil"),
    "fifo": Kind(Cause.PIPE, "read_shard"),
    "loader": Kind(Cause.LOADER, "read_shard"),
    "stop": Kind(Cause.STOPPED),
    "extra": Kind(None, code=3, modes=("tp",)),
    "checkpoint": Kind(None, code=0),
    "slow": Kind(None, code=0, limit=USUAL, hits=False),
    "uneven": Kind(None, code=0, limit=USUAL, hits=False),
    "healthy": Kind(None, code=0, limit=USUAL, hits=False),
}
