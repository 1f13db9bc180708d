"""A number of seconds in words."""

SECONDS = ((86_400, "d"), (3_600, "h"), (60, "min"), (1, "s"))


def duration(seconds: float) -> str:
    """The duration in its two largest units, as "2 h 5 min"; less than a second is "0.3 s"."""
    left, parts = round(seconds), list[str]()
    for size, unit in SECONDS:
        number, left = divmod(left, size)
        if number:
            parts.append(f"{number} {unit}")
        elif parts:
            break
        if len(parts) == 2:
            break
    return " ".join(parts) or f"{seconds:.1f} s"
