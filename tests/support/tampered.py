"""Recordings that somebody has tampered with: hostile text anywhere in an honest recording."""

import gzip
import json
import random
from collections.abc import Iterator
from functools import cache
from typing import Any

from tests.support.cases import from_cases
from tests.support.paths import ROOT

SAMPLES = ROOT / "tests" / "samples" / "recordings"


@cache
def saved(name: str) -> Any:
    return json.loads(gzip.decompress((SAMPLES / f"{name}.run.json.gz").read_bytes()))


FREE = from_cases(__file__, "FREE", frozenset[str])
"""Fields that may hold any text in a valid recording."""


def leaves(value: Any, key: str = "") -> Iterator[tuple[Any, Any, bool]]:
    """Every text in it: its container, its place there, and whether it is free."""
    for place, each in value.items() if isinstance(value, dict) else enumerate(value):
        name = place if isinstance(place, str) else key
        if isinstance(each, str):
            yield value, place, name in FREE
        elif isinstance(each, (dict, list)):
            yield from leaves(each, name)


def tampered(name: str, evil: str, dice: random.Random, share: float, free: bool) -> bytes:
    recording = json.loads(json.dumps(saved(name)))
    for container, place, may in list(leaves(recording)):
        if dice.random() < share and (may or not free):
            text = container[place]
            at = dice.randrange(len(text) + 1)
            container[place] = text[:at] + evil + text[at:]
    return json.dumps(recording).encode()
