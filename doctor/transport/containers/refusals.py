"""How container engines and kubectl refuse to enter, in their own words (tests/samples/entry)."""

import re
from dataclasses import dataclass

from doctor.text.hostprogram import table


@dataclass(frozen=True, slots=True)
class Refusal:
    """One way in which an engine refuses: its meaning, and what to do. `{}` is what the pattern caught."""

    pattern: str
    summary: str
    remedy: str
    look: str = ""
    """What to type after the name of the tool, on the machine where the engine runs."""

    def meaning(self, caught: str) -> str:
        return " ".join(self.summary.replace("{}", caught).split()).replace("()", "")


REFUSALS = tuple(Refusal(*row) for row in table(__file__, "refusals.txt"))


def refusal_in(text: str) -> tuple[Refusal | None, str]:
    """The first refusal that fits, and the name that it mentions."""
    for refusal in REFUSALS:
        match = re.search(refusal.pattern, text)
        if match:
            return refusal, next((it for it in match.groupdict().values() if it), "").strip(".")
    return None, ""
