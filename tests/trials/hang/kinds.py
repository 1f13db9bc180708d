"""The faults, and what `doctor hang` must report about each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from doctor.hang.judge.judgement import Cause

ANY = ("torchrun", "mpirun", "srun")


@dataclass(frozen=True, slots=True)
class Kind:
    """`cause` is None if no rank is to be named; `function` is the place of the victim. The victim is accused
    if the code is 1, otherwise it is a suspect.
    """

    cause: Cause | None
    function: str = ""
    code: int = 1
    limit: float = 2.0
    """Seconds that a job may stand still: hangs in trials are only seconds old."""
    hits: bool = True
    """Whether it begins at a step."""
    modes: tuple[str, ...] = ("ddp", "tp", "pp")
    launchers: tuple[str, ...] = ANY
    ranks: int = 1
    """The least number of ranks on each host."""
    idle: bool = False
    """No rank is in a collective."""
    pair: bool = False
    """Whether the victim is shown together with others, or no rank is named."""

    @property
    def looks(self) -> int:
        """The number of looks at one job. Jobs that go on are looked at repeatedly, because any look could
        accuse a rank.
        """
        return 5 if self.code == 0 else 1


USUAL = 60.0
STANDS = ("sleep", "lock", "gil", "fifo", "loader", "stop", "storage", "dstate")
"""Two ranks may have these faults at once."""
KINDS: Mapping[str, Kind] = {
    "sleep": Kind(Cause.SLEEPS, "doze"),
    # Named but not accused: it looks like long work.
    "spin": Kind(Cause.COMPUTES, "spin", code=3),
    "lock": Kind(Cause.LOCK, "wait_for_lock"),
    "gil": Kind(Cause.GIL, "hold_gil"),
    "fifo": Kind(Cause.PIPE, "read_shard"),
    "loader": Kind(Cause.LOADER, "read_shard"),
    "stop": Kind(Cause.STOPPED),
    "storage": Kind(Cause.STORAGE, "read_dead_shard"),
    "dstate": Kind(Cause.KERNEL, "run_dead_program"),
    # A rank is killed while the others wait for it in the store. mpirun would end them all, srun does not,
    # and torchrun ends those of its own host; then nothing there shows which ranks it had.
    "kill": Kind(Cause.GONE, modes=("ddp",), launchers=("srun",), ranks=2),
    "lost": Kind(None, code=3, modes=("ddp",), launchers=("torchrun",)),
    "netdrop": Kind(Cause.LINK, hits=False),
    # In pp, the second victim would wait for the first one and never reach its own fault.
    "two": Kind(None, modes=("ddp", "tp")),
    "extra": Kind(None, code=3, modes=("tp",), pair=True),
    "skip": Kind(None, code=3, modes=("tp",), pair=True),
    "order": Kind(None, code=3, modes=("tp",), pair=True),
    "hub": Kind(Cause.LOCK, "wait_for_hub", modes=("ddp",)),
    "fork": Kind(Cause.FORK, "tokenize", modes=("ddp",)),
    "leave": Kind(Cause.LEFT, "rest", modes=("ddp",)),
    # All hosts answer, and one of them has nothing left of the job.
    "power": Kind(Cause.GONE, hits=False, modes=("ddp",), launchers=("torchrun",)),
    # Nobody waits for a rank that has left if all have.
    "over": Kind(None, code=3, idle=True, modes=("ddp",)),
    "download": Kind(Cause.LOCK, "wait_for_hub", code=3, modes=("ddp",)),
    "briefly": Kind(None, code=0, limit=USUAL, modes=("ddp",)),
    "checkpoint": Kind(None, code=0),
    "slow": Kind(None, code=0, limit=USUAL, hits=False),
    "uneven": Kind(None, code=0, limit=USUAL, hits=False),
    "healthy": Kind(None, code=0, limit=USUAL, hits=False),
}
