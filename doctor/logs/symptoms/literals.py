"""Finds literals in a line in their order, and the values that `take` gets from it."""

import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import AnyStr

from doctor.logs.model import Symptom

WINDOW = 600
"""Characters that `take` sees, so that a long hostile line costs no more than a short one."""
BEFORE = 200
"""How many of these are before the first literal, where a rank or a host is often written."""
_ON = re.compile(r"@([\w.-]{1,250})")
"""The host behind the name of a user on it."""
MOST_TAKEN = 200
"""The most characters of one value."""


def place(text: AnyStr, literals: Iterable[AnyStr]) -> int | None:
    """The position of the first literal if all are in the text in this order, without overlap; else None."""
    first = None
    at = 0
    for literal in literals:
        found = text.find(literal, at)
        if found < 0:
            return None
        first = found if first is None else first
        at = found + len(literal)
    return first


def stands(text: AnyStr, patterns: Iterable[Iterable[AnyStr]]) -> int | None:
    """The position of the first pattern that is in the text, or None."""
    for literals in patterns:
        at = place(text, literals)
        if at is not None:
            return at
    return None


@lru_cache(maxsize=4096)
def compiled(take: str) -> re.Pattern[str]:
    return re.compile(take)


def taken(symptom: Symptom, text: str, at: int) -> Mapping[str, str]:
    """The values that `take` finds around the position of a match, without unused groups."""
    if not symptom.take:
        return {}
    start = max(0, at - BEFORE)
    found = compiled(symptom.take).search(text[start : start + WINDOW])
    if found is None and len(text) > start + WINDOW:
        found = compiled(symptom.take).search(text[-WINDOW:])  # behind the arguments of a command
    return {} if found is None else values_of(found)


def values_of(found: re.Match[str]) -> dict[str, str]:
    """The groups with a value: a host without the user on it, and nothing with the end of a sentence."""
    values = dict[str, str]()
    for name, value in found.groupdict().items():
        on = _ON.match(found.string, found.end(name)) if name.endswith("host") else None
        if said := on[1] if on else value:
            values[name] = said[:MOST_TAKEN].rstrip(".") or said
    return values
