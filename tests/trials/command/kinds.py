"""What goes wrong in a trial of `doctor run`, drawn by its number."""

import random
from collections.abc import Mapping
from dataclasses import dataclass

from msgspec import Struct, convert

from tests.trials.kindfile import entries

ON_HOSTS = ("torchrun on hosts", "srun")
SEVERAL = ("torchrun", "mpirun", "loop", "accelerate", "deepspeed", *ON_HOSTS)
"""The launchers with two ranks."""


class CommandKind(Struct, frozen=True, forbid_unknown_fields=True):
    """`ends` is how the bare command ends: it is killed, raises, or is ended by somebody."""

    fault: str = ""
    options: tuple[str, ...] = ()
    names: bool = False
    """Whether the victim is to be named."""
    steps: int = 12
    ends: str = ""
    says: str = ""
    """What the report says of it."""
    more: Mapping[str, str] = {}
    """Variables of the job."""
    launchers: tuple[str, ...] = ()
    """Those that have this kind; all, if none is named."""


TABLES = entries(__file__)
KINDS = convert(TABLES["kinds"], dict[str, CommandKind])
CODES = convert(TABLES["codes"], dict[str, dict[str, frozenset[int]]])
"""The exit codes that the command has without doctor, by launcher."""
MORE = convert(TABLES["variables"], dict[str, dict[str, str]])
"""Variables for a launcher."""


@dataclass(frozen=True, slots=True)
class Draw:
    """One trial."""

    name: str
    launcher: str
    number: int

    @property
    def row(self) -> str:
        """Of the table."""
        return f"{self.name}, {self.launcher}"

    @property
    def kind(self) -> CommandKind:
        return KINDS[self.name]

    def _of(self, what: str) -> random.Random:
        return random.Random(f"{self.name} {self.launcher} {self.number} {what}")

    @property
    def victim(self) -> int:
        return self._of("victim").randrange(2) if self.launcher in SEVERAL else 0

    @property
    def at(self) -> int:
        """The step of the fault."""
        return self._of("step").randrange(2, 10)

    @property
    def moment(self) -> float:
        """When doctor is killed, in seconds."""
        return self._of("moment").uniform(0.3, 12.0)

    @property
    def by_pipe(self) -> bool:
        """Whether its output goes through a pipe, and not to a file."""
        return self.number % 2 == 1

    @property
    def port(self) -> int:
        return self._of("port").randrange(20_000, 28_000)

    @property
    def typed(self) -> bool:
        """Whether the signal goes to the whole group, as in a terminal: deepspeed ends only then."""
        return self.launcher == "deepspeed" or self.number % 2 == 0

    @property
    def codes(self) -> frozenset[int]:
        by = CODES[self.kind.ends or "by itself"]
        return by.get(self.launcher, by["any"])

    @property
    def environment(self) -> dict[str, str]:
        return {
            "FAULT": self.kind.fault,
            "VICTIM": str(self.victim),
            "AT": str(self.at),
            "STEPS": str(self.kind.steps),
            "OMP_NUM_THREADS": "1",
            **self.kind.more,
            **MORE.get(self.launcher, {}),
        }

    @property
    def place(self) -> str:
        where = f"rank {self.victim} step {self.at}"
        return where if self.kind.fault else f"{self.moment:.1f} s" if self.kind.ends == "kill" else "-"
