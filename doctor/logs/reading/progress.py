"""The last line of each rank that says how far it is."""

from __future__ import annotations

import re
from collections.abc import Iterator

from doctor.logs.reading.window import Window

_WORDS = (b"tep", b"poch", b"ter", b"STEP", b"EPOCH", b"it/s", b"s/it", b"atch")
_SAYS = re.compile(
    r"\b(?:global[_ ]?step|steps?|epochs?|iter(?:ation)?s?|batch(?:es)?)\b[\"'\]]?\s{0,4}[:=\[#(]?\s{0,12}\d"
    r"|\d{1,12}/\d{1,12} \[[^\]]{0,80}(?:it/s|s/it)",
    re.IGNORECASE,
)
_NEAR = 64 << 10
MOST_LINES = 400


def last_steps(window: Window) -> Iterator[tuple[int, int]]:
    """Lines that may say it, the last first: start and end."""
    end = window.end
    floor = max(window.start, end - _NEAR)
    looked = 0
    while end > floor and looked < MOST_LINES:
        start = max(window.data.rfind(b"\n", window.start, end - 1) + 1, window.start)
        line = window.data[start:end]
        looked += 1
        if any(word in line for word in _WORDS):
            yield start, end - line.endswith(b"\n")
        end = start


def says_step(text: str) -> bool:
    return len(text) < 2000 and not text.startswith("#") and _SAYS.search(text) is not None
