"""Guesses what was meant by a host name that cannot be resolved, from the names given with it."""

import re
from collections.abc import Iterable

from doctor.errors import nearest

_RANGE = re.compile(r"(.*[A-Za-z_-]|(?:[0-9]+\.){3})([0-9]{1,6})-(?:\1)?([0-9]{1,6})")
"""A range without brackets, `node1-4` or `node1-node4`: a valid host name, but rarely meant as one."""
_DIGITS = re.compile(r"([0-9]+)")


def probably(name: str, known: Iterable[str]) -> str:
    """The probable name or node set; empty if nothing is near. `known`: names that can be resolved.

    A name that differs from a known one only in its numbers belongs to the same series: nothing is guessed.
    """
    if (found := _RANGE.fullmatch(name)) and int(found[2]) < int(found[3]):
        return f"{found[1]}[{found[2]}-{found[3]}]"
    typed = _DIGITS.split(name)
    shapes = {"#".join(parts[::2]): parts for parts in map(_DIGITS.split, known) if len(parts) == len(typed)}
    own = "#".join(typed[::2])
    if own in shapes:
        return ""
    meant = nearest(own, shapes)
    if meant is None:
        return ""
    texts = shapes[meant][::2]
    return "".join(text + number for text, number in zip(texts, (*typed[1::2], ""), strict=True))
