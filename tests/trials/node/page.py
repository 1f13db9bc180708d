"""The page with the result: how often each situation was looked at, and what doctor said."""

from collections import Counter
from collections.abc import Sequence
from statistics import median

from benchmarks.table import columns
from tests.support.cases import from_cases
from tests.trials.node.situation import Group
from tests.trials.outcome import Outcome

HEAD = ("situation", "runs", "exit codes", "median", "longest", "warnings over SSH")
TEXT = from_cases(__file__, "TEXT", str)


def page(outcomes: Sequence[Outcome], groups: Sequence[Group]) -> str:
    wrong = [each for each in outcomes if each.code == 1]
    unread = [each for each in outcomes if each.code not in (0, 1)]
    parts = [
        TEXT,
        f"**{len(outcomes)} runs: {len(wrong)} accused a sound host (exit code 1), {len(unread)} ended with "
        f"another code than 0 or 1.**\n",
    ]
    for group in groups:
        rows = [
            row
            for name in (each.name for each in group.situations)
            if (row := _row(name, [one for one in outcomes if one.fault == name]))
        ]
        if rows:
            parts.append(f"## {group.title}\n\n{columns(HEAD, rows)}\n")
    return "\n".join(parts).rstrip()


def _row(name: str, runs: Sequence[Outcome]) -> list[str]:
    if not runs:
        return []
    codes = Counter(each.code for each in runs)
    warned = Counter(word[1] for each in runs for said in each.said if (word := said.split())[:1] == ["WARN"])
    taken = [each.seconds for each in runs]
    return [
        name,
        str(len(runs)),
        ", ".join(f"{code}: {count}" for code, count in sorted(codes.items())),
        f"{median(taken):.1f} s",
        f"{max(taken):.1f} s",
        ", ".join(f"{check}: {count}" for check, count in sorted(warned.items())),
    ]
