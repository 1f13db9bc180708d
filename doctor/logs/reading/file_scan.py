"""The result of reading one file."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from doctor.logs.forms import learn
from doctor.logs.forms.names import NameFacts
from doctor.logs.model import Curve, Form, LogLine, Symptom
from doctor.logs.reading.fold import Fold, UnresolvedParty
from doctor.logs.reading.mark import PartEnd

CUT_OFF = "cut off"
"""The key in Scan.odd of a traceback that the file ends in."""
Decided = tuple[tuple[Symptom, Mapping[str, str]], ...]
"""The symptoms of a line with the values taken from it."""


@dataclass(slots=True)
class Scan:
    """What is known about one file, or about a part of it."""

    name: str
    size: int
    written: float
    named: NameFacts
    lines: int = 0
    forms: Counter[Form] = field(default_factory=Counter)
    fold: Fold = field(default_factory=Fold)
    learned: learn.FileFacts = field(default_factory=learn.FileFacts)
    ranks: set[int] = field(default_factory=set)
    tasks: set[int] = field(default_factory=set)
    """The tasks of Slurm that wrote in it, by the labels of srun."""
    hosts: Counter[str] = field(default_factory=Counter)
    pids: Counter[int] = field(default_factory=Counter)
    shared: bool = False
    """Whether prefixes of Ray or vLLM name the writers of lines: then nobody owns the file."""
    first_at: float | None = None
    last_at: float | None = None
    last: LogLine | None = None
    faint: tuple[UnresolvedParty, LogLine] | None = None
    """A last line that only complains if nothing else does and the log shows no work."""
    over: dict[UnresolvedParty, LogLine] = field(default_factory=dict)
    progress: dict[UnresolvedParty, LogLine] = field(default_factory=dict)
    odd: dict[str, tuple[UnresolvedParty, LogLine]] = field(default_factory=dict)
    curves: tuple[Curve, ...] = ()
    problem: str = ""
    launchers: set[int] = field(default_factory=set)
    """Processes of torchrun that wrote in it."""
    tables: set[bytes] = field(default_factory=set)
    """The hosts in torchrun's tables of failed ranks."""
    searched: int = 0
    """How many lines had their neighbours searched for values."""
    mark: PartEnd | None = None
    """How it ends, if it is a part of a file."""
    gave_up: bool = False
    """Whether the launcher says that it will not restart the ranks."""

    @property
    def starts_ranks(self) -> bool:
        """Whether the tasks of Slurm are torchruns, so that their numbers are not ranks."""
        return bool(self.tasks) and Form.ELASTIC in self.forms
