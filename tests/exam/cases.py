"""The cases of the exam: a log, its truth, and what an answer must and must not say.

Rules are changed by looking at the half `seen` only, and judged by the half `unseen`.
"""

import json
import random
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

FOLDER = Path(__file__).parent / "logs"
Half = Literal["seen", "unseen"]


@dataclass(frozen=True, slots=True)
class Case:
    name: str
    kind: str
    exits: frozenset[int]
    must: tuple[re.Pattern[str], ...]
    must_not: tuple[re.Pattern[str], ...]
    half: Half
    log: Path

    def worth(self, code: int, said: str) -> Literal["right", "missed", "false"]:
        """`false`: the answer says what must not be said; `missed`: it lacks what must be said."""
        if any(pattern.search(said) for pattern in self.must_not):
            return "false"
        return "right" if code in self.exits and all(p.search(said) for p in self.must) else "missed"


def cases(folder: Path = FOLDER) -> list[Case]:
    rows: Mapping[str, Mapping[str, Any]] = json.loads((folder / "want.json").read_text())
    drawn = halves(rows)
    made = [
        Case(
            name,
            row["kind"],
            frozenset(row["exit"]),
            tuple(map(re.compile, row["must"])),
            tuple(map(re.compile, row["mustnot"])),
            drawn[name],
            _log(folder, name),
        )
        for name, row in rows.items()
    ]
    return [case for case in made if case.log.exists()]


def _log(folder: Path, name: str) -> Path:
    """A file, or a folder if each rank wrote a file of its own."""
    file = folder / f"{name}.log"
    return file if file.exists() else folder / name


def halves(rows: Mapping[str, Mapping[str, Any]]) -> dict[str, Half]:
    """Drawn by name, so that a new case leaves the others where they are."""
    return {name: "seen" if random.Random(f"half {name}").random() < 0.5 else "unseen" for name in rows}
