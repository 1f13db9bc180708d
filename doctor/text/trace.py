"""`--trace`: what doctor itself does, host by host, with the seconds since it began, on stderr."""

import time

from doctor.text.printable import clean_line
from doctor.text.speech import t
from doctor.text.terminal import tell

began: list[float] = []
"""The time, once it has begun."""


def trace(who: str, step: str) -> None:
    """Print a step that begins now. `who` is a host, or empty for doctor itself."""
    if began:
        words = t(step)
        tell(f"{time.monotonic() - began[0]:9.3f} s  {clean_line(f'{who}: {words}' if who else words)}\n")
