"""Ranks that fell silent: they log no more steps, others go on, and nobody complains.

In a parallel training no rank gets far ahead of another. Output that was not flushed, and logs that are
fetched while the job runs, end a little earlier, which proves nothing.
"""

from collections.abc import Iterable

from doctor.logs.judge.words import MOST
from doctor.logs.model import Curve
from doctor.text.ranks import ranks_text

ENOUGH = 10
"""The pace of a rank is known after at least this number of losses."""
PAUSES = 5
SHARE = 0.05
"""A rank fell behind if it lags by more than PAUSES of its own logging intervals and SHARE of the job."""


def fell_silent(curves: Iterable[Curve]) -> str:
    """A sentence about the ranks that fell silent, or an empty text."""
    numbered = (each for each in curves if not each.counted and each.total >= ENOUGH)
    last = {each.who.rank: each for each in numbered if each.who.rank is not None}
    front = max((each.steps[-1] for each in last.values()), default=0)
    behind = {rank: each.steps[-1] for rank, each in last.items() if _is_far(each, front)}
    if not behind:
        return ""
    ahead = [rank for rank in last if rank not in behind]
    told = f"{ranks_text(behind, most=MOST)} logged no step after {max(behind.values()):,}"
    return f"{told}, and {ranks_text(ahead, most=MOST)} went on to {front:,}: no line says why"


def _is_far(curve: Curve, front: int) -> bool:
    pause = (curve.steps[-1] - curve.steps[0]) / (curve.total - 1)
    lacking = front - curve.steps[-1]
    return lacking > PAUSES * max(pause, 1) and lacking > SHARE * front
