"""`--inject`: mistakes in it are reported before any host is asked, and `help` lists the faults."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from doctor.errors import UsageError, suggest
from doctor.smoke.inject import KINDS, parse_injection
from doctor.smoke.plan import MOST_STEPS, STEPS

HELP = "help"
_PLACE = re.compile(r"\d{1,7}(:\d{1,7})?", re.ASCII)
ANY_RANK = 10**7
"""More ranks than can be written: how many there will be is not known yet."""


def check_faults(given: Sequence[str] | None, faults: Iterable[str], steps: int | None) -> None:
    """`given` is the option as it was typed, `faults` are the words in it."""
    faults = tuple(faults)
    if given and not faults:
        raise UsageError("--inject names no fault.", listed())
    for fault in faults:
        kind, _, rest = fault.partition("@")
        name = kind.strip().lower()
        if name not in KINDS:
            near = suggest(name, KINDS)
            known = f"--inject {fault[:60]!r}: there is no fault {name[:40]!r}"
            raise UsageError(f"{known}; {near}" if near else f"{known}.", listed())
        if not _PLACE.fullmatch(rest.strip()):
            raise UsageError(
                f"--inject {fault[:60]!r} is not KIND@RANK[:STEP].", f"For instance {_example(name)}."
            )
        # An impossible number of steps is reported elsewhere.
        parse_injection(fault, ANY_RANK, steps if steps and 1 <= steps <= MOST_STEPS else STEPS)


def listed() -> str:
    """The faults, a line each."""
    width = max(map(len, KINDS))
    rows = (f"  {name:<{width}}  {kind.title}" for name, kind in KINDS.items())
    bare = " and ".join(name for name, kind in KINDS.items() if not kind.takes_step)
    return "\n".join(
        (
            f"Faults, as --inject KIND@RANK[:STEP], for instance {_example('stuck')}:",
            *rows,
            f"Ranks and steps count from 0. {bare} take no step.",
        )
    )


def _example(name: str) -> str:
    return f"{name}@1:12" if KINDS[name].takes_step else f"{name}@1"
