"""The headlines of a report: who and what at the left, the check at the right, on one line or two."""

from __future__ import annotations

import re


def headline(shown: str, who: str, check: str) -> bool:
    """Whether some finding begins with `who` ("FAIL  node2") and ends its headline with this check."""
    return bool(
        re.search(rf"{re.escape(who)}  (?:[^\n]+\n +)?[^\n]*(?<=[ ]){re.escape(check)}$", shown, re.M)
    )


def failures(shown: str) -> int:
    """How many findings are faults, those below their cause among them; the table of hosts does not count."""
    return len(re.findall(r"^(?:  [└`] )?FAIL  ", shown, re.M))
