"""The headlines of a report: who and what on the left, the check on the right, on one line or two."""

import re


def headline(shown: str, who: str, check: str) -> bool:
    """Whether some finding begins with `who` ("FAIL  node2") and ends its headline with this check."""
    return bool(
        re.search(rf"{re.escape(who)}  (?:[^\n]+\n +)?[^\n]*(?<=[ ]){re.escape(check)}$", shown, re.M)
    )


def failures(shown: str) -> int:
    """The number of findings that are faults, including those below their cause; the table of hosts does not
    count.
    """
    return len(re.findall(r"^(?:  [└`] )?FAIL  ", shown, re.M))
