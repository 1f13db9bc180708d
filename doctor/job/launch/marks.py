"""Words of a launch script that mean accelerators of one vendor, wherever in the script they are."""

from __future__ import annotations

import re
from dataclasses import dataclass

from doctor.devices import VENDORS
from doctor.text.redact import redact

MOST = 8


@dataclass(frozen=True, slots=True)
class Mark:
    """Such words in `line`; `vendor` is its name. `strong`: the script cannot do without these devices."""

    vendor: str
    text: str
    line: int
    strong: bool


def marks_in(text: str) -> tuple[Mark, ...]:
    """The first such words of each kind. Comments say nothing."""
    found: dict[tuple[str, str], Mark] = {}
    for number, line in enumerate(text.splitlines(), start=1):
        code = re.sub(r"(?:^|\s)#.*", "", line)
        for vendor in VENDORS:
            for strong, pattern in ((True, vendor.launch_needs), (False, vendor.launch_hints)):
                for match in re.finditer(pattern, code) if pattern else ():
                    words = redact(match[0].strip())[:80]
                    found.setdefault((vendor.name, words), Mark(vendor.name, words, number, strong))
    return tuple(found.values())[:MOST]
