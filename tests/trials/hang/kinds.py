"""What a fault of `kinds.yaml` is."""

from msgspec import Struct

from doctor.hang.judge.judgement import Cause
from tests.trials.kindfile import kinds


class Kind(Struct, frozen=True, forbid_unknown_fields=True):
    cause: Cause | None = None
    function: str = ""
    code: int = 1
    limit: float = 2.0
    """Seconds that a job may stand still: hangs in trials are only seconds old."""
    hits: bool = True
    """Whether it begins at a step."""
    modes: tuple[str, ...] = ("ddp", "tp", "pp")
    launchers: tuple[str, ...] = ("torchrun", "mpirun", "srun")
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


STANDS = ("sleep", "lock", "gil", "fifo", "loader", "stop", "storage", "dstate")
"""Two ranks may have these faults at once."""
KINDS = kinds(__file__, Kind)
