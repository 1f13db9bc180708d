"""The exit codes, and the tree of our errors: a low-level exception becomes a sentence in one place.

    DoctorError             a problem that a person can act on: what, where, and the next step
    ├── NotExamined         nothing could be examined, and nobody is at fault (exit 3)
    ├── UsageError          the command line, an inventory or another input file is wrong (exit 2)
    │   └── InputErrors     all mistakes in the input files at once, each with file and line
    └── UnreadableOutput       output of a host that a parser could not read; becomes "unknown"

No message contains a secret or a traceback.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

EXIT_OK, EXIT_FAULT, EXIT_USAGE, EXIT_INCONCLUSIVE, EXIT_BROKEN = 0, 1, 2, 3, 70


class DoctorError(Exception):
    """`hint` is the next step, addressed to the person who takes it."""

    exit_code = EXIT_BROKEN

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


class NotExamined(DoctorError):
    """What somebody else does keeps us from examining; nobody is accused."""

    exit_code = EXIT_INCONCLUSIVE


class UsageError(DoctorError):
    """Wrong options or input."""

    exit_code = EXIT_USAGE


@dataclass(frozen=True, slots=True)
class Mistake:
    """One mistake in an input file. `line` and `column` count from 1; None means the file as a whole, 0 that
    the column is not known.
    """

    file: str
    line: int | None
    message: str
    column: int = 0

    def __str__(self) -> str:
        place = self.file if self.line is None else f"{self.file}:{self.line}"
        place += f":{self.column}" if self.column else ""
        return f"{place}: {self.message}"


class InputErrors(UsageError):
    """Every mistake in the input files, reported together."""

    def __init__(self, mistakes: Sequence[Mistake], hint: str = "") -> None:
        self.mistakes = tuple(mistakes)
        super().__init__("\n".join(str(m) for m in self.mistakes), hint)


class UnreadableOutput(DoctorError):
    """A host printed something that the parser of a fact cannot read."""


def suggest(word: str, known: Iterable[str]) -> str:
    """`did you mean 'x'?` if the word is probably a misspelling of one of `known`, else an empty string."""
    meant = nearest(word, known)
    return f"did you mean {meant!r}?" if meant is not None else ""


def nearest(word: str, known: Iterable[str]) -> str | None:
    """The entry of `known` that the word probably misspells, if there is one."""
    import difflib  # slow to import, and only for mistakes

    names = {name.casefold(): name for name in reversed(list(known)[:2000])}
    near = difflib.get_close_matches(word[:100].casefold(), names, n=1, cutoff=0.7)
    return names[near[0]] if near else None
