"""The targets: where cases come from, what reads them, and what counts as a find."""

import traceback
import unicodedata
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from random import Random

from doctor.errors import DoctorError
from doctor.text.console import drawn
from tests.support.limits import TooSlow, within
from tests.trials.fuzz.mutate import spoilt

LONGEST = 10.0
"""The most seconds of CPU for a case."""
MOST_MEMORY = 500_000
"""The most kB that a case may add to this process."""
Mutate = Callable[[Random, bytes, Sequence[bytes]], bytes]


class Find(AssertionError):
    """A forbidden result, although nothing crashed."""


@dataclass(frozen=True, slots=True)
class Target:
    """`read` raises on a find; our own errors are not finds."""

    name: str
    honest: Callable[[], Sequence[bytes]]
    read: Callable[[bytes], None]
    mutate: Mutate = spoilt

    def case(self, seed: str) -> bytes:
        """The same case for the same seed."""
        dice = Random(f"{self.name} {seed}")
        inputs = _honest(self)
        return self.mutate(dice, dice.choice(inputs), inputs)


@cache
def _honest(target: Target) -> Sequence[bytes]:
    return tuple(target.honest())


def samples(*globs: str) -> Callable[[], Sequence[bytes]]:
    """The matching files of tests/samples."""
    folder = Path(__file__).parents[2] / "samples"
    return lambda: [
        path.read_bytes() for glob in globs for path in sorted(folder.glob(glob)) if path.is_file()
    ]


def refuse_unsafe(shown: str) -> None:
    """Output must not move the cursor, change colours or the direction of writing, or hide text."""
    for at, c in enumerate(shown):
        if c not in "\n\t" and unicodedata.category(c) in ("Cc", "Cf", "Cs", "Zl", "Zp"):
            raise Find(f"{c!r} is shown: {shown[max(0, at - 60) : at + 20]!r}")


def printed(show: Callable[..., object]) -> str:
    """The report on a narrow terminal, with all details."""
    return drawn(lambda console: show(console, verbose=True), 60, colour=False)


def tried(target: Target, case: bytes) -> str | None:
    """The find: its kind and place, which are equal for equal finds; None if there is no find."""
    _forget()
    before = _memory()
    try:
        with within(LONGEST):
            target.read(case)
    except DoctorError as error:
        with suppress(Find):
            refuse_unsafe(error.message)  # the entry point cleans it, so it must not be checked here
    except (Exception, SystemExit, TooSlow) as error:
        return f"{type(error).__name__}: {str(error)[:300]}\n{_where(error)}"
    used = _memory() - before
    return f"it took {used // 1000} MB" if used > MOST_MEMORY else None


def _memory() -> int:
    """The peak memory of this process since `_forget`, in kB."""
    return int(Path("/proc/self/status").read_text().partition("VmHWM:")[2].split()[0])


def _forget() -> None:
    Path("/proc/self/clear_refs").write_text("5")


def _where(error: BaseException) -> str:
    """The innermost places; the last one in our own code distinguishes finds."""
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if "/doctor/" in frame.filename or "/checks/" in frame.filename]
    return "".join(traceback.format_list((own or frames)[-6:]))
