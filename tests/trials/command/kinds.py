"""What goes wrong in a trial of `doctor run`, drawn by its number."""

from __future__ import annotations

import random
import signal
from collections.abc import Mapping
from dataclasses import dataclass, field

STEPS, MANY = 12, 100_000


@dataclass(frozen=True, slots=True)
class CommandKind:
    """`ends` is how the bare command ends: it is killed, raises, or is ended by somebody."""

    fault: str = ""
    options: tuple[str, ...] = ()
    names: bool = False
    """Whether the victim is to be named."""
    steps: int = STEPS
    ends: str = ""
    says: str = ""
    """What the report says of it."""
    more: Mapping[str, str] = field(default_factory=dict)
    """Variables of the job."""
    launchers: tuple[str, ...] = ()
    """Those that have this kind; all, if none is named."""


ENDS = ("--on-hang", "end")
ON_HOSTS = ("torchrun on hosts", "srun")
SEVERAL = ("torchrun", "mpirun", "loop", "accelerate", "deepspeed", *ON_HOSTS)
"""The launchers with two ranks. If a single rank sleeps, nobody waits for it, so no hang is named."""
SAFE = {"PYTHONSAFEPATH": "1"}
"""So that what numpy imports is not looked for beside the program."""
MORE: Mapping[str, Mapping[str, str]] = {
    "python": {"RANK": "0", "WORLD_SIZE": "1"},
    "accelerate": SAFE,
    "deepspeed": {"DS_ACCELERATOR": "cpu", **SAFE},
}
"""Variables for a launcher."""
KINDS: Mapping[str, CommandKind] = {
    "healthy": CommandKind(),
    "killed": CommandKind("kill", names=True, ends="killed"),
    "exception": CommandKind("raise", names=True, ends="raised"),
    "hangs": CommandKind("sleep", ("--stall", "3", *ENDS), names=True, ends="doctor", launchers=SEVERAL),
    "loader": CommandKind("loader", ("--stall", "3", *ENDS), names=True, ends="doctor", launchers=SEVERAL),
    "NaN": CommandKind("nan", ("--on-loss", "end"), steps=MANY, ends="doctor"),
    "interrupted": CommandKind(steps=MANY, ends="interrupted"),
    "doctor killed": CommandKind(steps=40, ends="kill"),
    "skips": CommandKind(
        "skip", ("--stall", "3", *ENDS), ends="doctor", says="different collectives", launchers=SEVERAL
    ),
    "memory": CommandKind("memory", names=True, ends="killed"),
    "shm": CommandKind("shm", names=True, ends="raised", says="shared memory of its host"),
    "network": CommandKind(
        "network", ("--stall", "3", *ENDS), steps=MANY, ends="network", launchers=ON_HOSTS, says="node2"
    ),
    "time limit": CommandKind(steps=MANY, ends="limit", says="time limit", launchers=("srun",)),
    "compiles": CommandKind("compile", ENDS, more={"PAUSE": "150"}),
    "writes": CommandKind("checkpoint", ENDS, more={"PAUSE": "200"}),
    "pauses": CommandKind("checkpoint", ("--stall", "20", *ENDS), more={"PAUSE": "60,40"}),
    "compiles again": CommandKind("compile", ("--stall", "20", *ENDS), more={"PAUSE": "60,40"}),
    "silent": CommandKind("silent", ("--stall", "5", *ENDS), steps=400),
    "floods": CommandKind(steps=4, more={"FLOOD": "500000", "EACH": "0"}),
}
CODES: Mapping[str, Mapping[str, frozenset[int]]] = {
    "": {"": frozenset({0})},
    "killed": {
        "": frozenset({1}),
        "mpirun": frozenset({137}),
        "srun": frozenset({137}),
        "python": frozenset({-signal.SIGKILL}),
        "deepspeed": frozenset({247}),
    },
    "raised": {"": frozenset({1})},
    "doctor": {"": frozenset({75})},
    "interrupted": {"": frozenset({1, 130, -signal.SIGINT})},
    "network": {"": frozenset({1, 130})},
    "limit": {"": frozenset({130, 143})},
    "kill": {"": frozenset({-signal.SIGKILL})},
}
"""The exit codes that the command has without doctor, by launcher."""


@dataclass(frozen=True, slots=True)
class Draw:
    """One trial."""

    name: str
    launcher: str
    number: int

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
        by = CODES[self.kind.ends]
        return by.get(self.launcher, by[""])

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
