"""How far a healthy loss is above the lowest possible loss of its batches at each step. Pure.

The lowest possible loss of a batch is that of a model that knows the theme of each sequence. It is known
beforehand and is subtracted: after 20 steps most of a loss's scatter comes from the batches, and would hide a
training that stopped halfway.
"""

import math
from array import array
from bisect import bisect_right
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache
from itertools import compress
from statistics import fmean

from doctor.smoke.onhost.corpus import LENGTH, OTHER, THEME, batch_of
from doctor.smoke.onhost.shape import CellShape

STEPS = (0, 5, 10, 15, 20, 25, 30, 40, 60)
EXPECTED = {
    1: (4.07, 2.66, 1.51, 0.86, 0.54, 0.35, 0.24, 0.146, 0.109),
    2: (4.07, 2.28, 1.00, 0.49, 0.256, 0.175, 0.137, 0.114, 0.094),
    4: (4.07, 1.91, 0.63, 0.27, 0.156, 0.12, 0.11, 0.1, 0.085),
    8: (4.07, 1.61, 0.44, 0.19, 0.118, 0.108, 0.103, 0.09, 0.08),
}
"""The expected excess at these steps, by the least number of replicas: with more data a step the loss falls
faster. Means of healthy runs with 300, 120, 60 and 25 seeds.
"""
TOLERANCE = 2.2
"""The excess of the last losses of these runs was at most 1.7 times the expected one, and 1.45 times after 30
steps; its logarithm has a standard deviation of 0.17 with one replica, and less with more.
"""
REPLICAS = 4
"""The loss of this many replicas is compared; the others train the same model."""


@lru_cache(maxsize=4096)
def least_of(shape: CellShape, step: int, dp: int) -> float:
    """The lowest possible loss of a replica's batch: that of a model that knows each sequence's theme."""
    batch = batch_of(shape, step, dp)
    tokens = array("q", batch.tokens)
    costs: list[float] = []
    for first in range(0, len(tokens), LENGTH):
        row, mask = tokens[first : first + LENGTH], batch.mask[first : first + LENGTH]
        theme = Counter(row).most_common(1)[0][0]
        costs += [-math.log(THEME if token == theme else OTHER) for token in compress(row, mask)]
    return fmean(costs)


def excess(shape: CellShape, curves: Sequence[Sequence[float | None]], steps: range) -> float | None:
    """The mean loss above the lowest of its batches; None if a loss was NaN or infinite."""
    above: list[float] = []
    for dp, curve in enumerate(curves[:REPLICAS]):
        for step in steps:
            loss = curve[step]
            if loss is None:
                return None
            above.append(loss - least_of(shape, step, dp))
    return fmean(above)


def allowed(replicas: int, steps: range) -> float:
    """The most that a healthy run's mean excess over these steps can be."""
    return TOLERANCE * expected(replicas, steps)


def expected(replicas: int, steps: range) -> float:
    """The mean excess of healthy runs over these steps."""
    table = EXPECTED[max(number for number in EXPECTED if number <= replicas)]
    return fmean(_at(table, step) for step in steps)


def _at(table: Sequence[float], step: int) -> float:
    """The value at a step: between two steps of the table it falls exponentially; after the last it stays."""
    after = bisect_right(STEPS, step)
    if after in (0, len(STEPS)):
        return table[max(0, after - 1)]
    part = (step - STEPS[after - 1]) / (STEPS[after] - STEPS[after - 1])
    return math.exp((1 - part) * math.log(table[after - 1]) + part * math.log(table[after]))
