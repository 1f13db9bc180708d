"""tests/mutate/alive.md: how many changes were noticed, and a word to each that was not.

The words are written by hand in the table, and stay when the page is written anew.
"""

import re
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

from tests.mutate.ask import Answer
from tests.mutate.change import Change
from tests.support.cases import from_cases
from tests.support.paths import ROOT

PAGE = ROOT / "tests/mutate/alive.md"
SHOWN = 70
MISSING = "(no word yet)"
_ROW = re.compile(r"(\| .+ \| .+ \| .+ \|) (.+) \|")

HEAD = from_cases(__file__, "HEAD", str)


def summary(answers: Mapping[Change, Answer]) -> str:
    counted = Counter(answer.stage for answer in answers.values())
    noticed = len(answers) - counted.pop("", 0)
    share = 100 * noticed / len(answers) if answers else 0
    by = ", ".join(f"{count} by {stage}" for stage, count in counted.most_common())
    return f"{len(answers)} changes: {noticed} noticed ({share:.1f} %): {by}."


def page(answers: Mapping[Change, Answer], seed: int, earlier: str) -> str:
    words = _words(earlier)
    rows = sorted(_row(change) for change, answer in answers.items() if not answer.stage)
    table = [f"{row} {words.get(row, MISSING)} |" for row in rows]
    head = ["| file | in | change | why no test notices it |", "| :--- | :--- | :--- | :--- |"]
    return "\n".join([HEAD, f"**Seed {seed}. {summary(answers)}**", "", *head, *table, ""])


def write(answers: Mapping[Change, Answer], seed: int, path: Path = PAGE) -> None:
    earlier = path.read_text() if path.exists() else ""
    path.write_text(page(answers, seed, earlier))


def _words(text: str) -> Mapping[str, str]:
    return {row[1]: row[2] for line in text.splitlines() if (row := _ROW.fullmatch(line))}


def _row(change: Change) -> str:
    before, after = _around_difference(change.before, change.after)
    return f"| `{change.path}` | `{change.scope}` | `{_cell(before)}` → `{_cell(after)}` |"


def _around_difference(before: str, after: str) -> tuple[str, str]:
    same = next((at for at, (a, b) in enumerate(zip(before, after, strict=False)) if a != b), len(before))
    begin = max(0, same - SHOWN // 2) if max(len(before), len(after)) > SHOWN else 0
    return _cut(before, begin), _cut(after, begin)


def _cut(text: str, begin: int) -> str:
    return ("…" if begin else "") + text[begin : begin + SHOWN] + ("…" if len(text) > begin + SHOWN else "")


def _cell(code: str) -> str:
    return code.replace("|", "\\|").replace("`", "'")
