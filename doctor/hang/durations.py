"""A number of seconds in words."""

from __future__ import annotations

SECONDS = ((86_400, "d"), (3_600, "h"), (60, "min"), (1, "s"))


def duration(seconds: float) -> str:
    """The duration in its two largest units: "3 min 20 s", "2 h 5 min"."""
    left, parts = round(seconds), list[str]()
    for size, unit in SECONDS:
        number, left = divmod(left, size)
        if number or (unit == "s" and not parts):
            parts.append(f"{number} {unit}")
        elif parts:
            break
        if len(parts) == 2:
            break
    return " ".join(parts)
