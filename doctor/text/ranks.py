"""Rank numbers in words. The hook in users' scripts needs it too: standard library only."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby


def ranges(numbers: Iterable[int]) -> list[str]:
    """ "0-2", "5": neighbouring numbers as one range."""
    # Neighbouring numbers have the same distance from their positions in the sorted list.
    places = enumerate(sorted(set(numbers)))
    runs = [[n for _, n in run] for _, run in groupby(places, lambda each: each[1] - each[0])]
    return [str(run[0]) if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in runs]


def ranks_text(ranks: Iterable[int], what: str = "rank", most: int | None = None) -> str:
    """ "rank 3", "ranks 0-2, 5"; no more than `most` ranges."""
    numbers = set(ranks)
    texts = ranges(numbers)
    more = f" and {len(texts) - most} more" if most and len(texts) > most else ""
    return f"{what}{'' if len(numbers) == 1 else 's'} {', '.join(texts[:most])}{more}"
