"""A number of seconds in words, and read back."""

import re

SECONDS = ((86_400, "d"), (3_600, "h"), (60, "min"), (1, "s"))


def duration(seconds: float) -> str:
    """The duration in its two largest units, as "2 h 5 min"; less than a second is "0.3 s"."""
    left, parts = round(seconds), list[str]()
    for size, unit in SECONDS:
        number, left = divmod(left, size)
        if number or parts:
            parts.append(f"{number} {unit}" if number else "")
    return " ".join(filter(None, parts[:2])) or f"{seconds:.1f} s"


def seconds_of(typed: str, unit: str = "") -> float | None:
    """ "2h", "30m", "3d" in seconds; None if it is no such time. `unit`: that of a mere number."""
    found = re.fullmatch(r"(\d{1,6}(?:\.\d{1,3})?)\s*([smhdw]?)", typed.strip().lower())
    size = {"s": 1, "m": 60, "h": 3_600, "d": 86_400, "w": 604_800}.get(found[2] or unit) if found else None
    return float(found[1]) * size if found and size else None
