"""How long a command took, in words."""

from __future__ import annotations


def duration(seconds: float) -> str:
    """ "1 h 2 min 3 s"; less than a second is "0.3 s"."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    parts = ((hours, "h"), (minutes, "min"), (rest, "s"))
    shown = [f"{number} {unit}" for number, unit in parts if number]
    return " ".join(shown) or f"{seconds:.1f} s"
