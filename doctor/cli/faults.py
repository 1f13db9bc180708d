"""`--inject`: mistakes are reported before any host is contacted, and `--inject help` lists the faults."""

import re
from collections.abc import Iterable, Sequence

from doctor.errors import UsageError, suggest
from doctor.smoke.inject import KINDS, parse_injection
from doctor.smoke.plan import MOST_STEPS, STEPS

HELP = "help"
_PLACE = re.compile(r"\d{1,7}(:\d{1,7})?(/[a-z]{1,9})?", re.ASCII)
ANY_RANK = 10**7
"""A bound above every rank that can be typed: the number of ranks is not known yet."""


def check_faults(given: Sequence[str] | None, faults: Iterable[str], steps: int | None) -> None:
    """Raises UsageError for a mistake. `given` is the option as typed, `faults` are its words."""
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
    """The list of faults, one per line."""
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
