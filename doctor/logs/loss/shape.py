"""Finds faults of one curve: NaN, a rise, a standstill. Each function returns None if unsure.

A curve that is merely noisy, slow or flat is healthy: at the end of a training, or in a fine-tuning that
began low, the loss may stand still. So a standstill counts only at the loss of an untrained model.
"""

import itertools
from bisect import bisect_left, insort
from collections.abc import Sequence
from dataclasses import dataclass
from math import isfinite, log
from operator import sub
from statistics import fmean, median

from doctor.model import Confidence

FEWEST = 20
"""The shape of a curve with fewer finite losses is not judged."""
LARGEST = 1e100
ALIKE, AWAY = 1.05, 1.5
SPELLS = 4
"""At least this number of separate spells of NaN are not due to the loss scale."""
STILL_POINTS, STILL_STEPS = 50, 200
UNTRAINED = (10.0, 12.8)
"""The loss of a language model that learned nothing, for vocabularies of 22,000 to 360,000 tokens."""
NOISE = 1.4826


@dataclass(frozen=True, slots=True)
class CurveMark:
    """A fault, and its index in the curve."""

    place: int
    words: str
    how: tuple[str, ...] = ()
    confidence: Confidence = Confidence.STRONG


def no_numbers(losses: Sequence[float]) -> CurveMark | None:
    """Where losses become NaN or infinite. A few spells that end are due to the loss scale."""
    if isfinite(sum(losses)):
        return None
    bad = [not isfinite(loss) for loss in losses]
    if not any(bad):
        return None
    begins = [place for place, here in enumerate(bad) if here and (place == 0 or not bad[place - 1])]
    if bad[-1]:
        first = begins[-1]
        value = _spelt(losses[first])
        after = sum(bad[first:])
        last = (
            f"the loss before was {number(losses[first - 1])}"
            if first
            else "the first loss is already not a number"
        )
        many = f"all {after} that follow up to the end of the log are not numbers"
        many = many if after > 1 else "the last one up to the end of the log is not a number"
        return CurveMark(first, f"is {value}", (last, many))
    if len(begins) >= SPELLS:
        return CurveMark(
            begins[0],
            f"is {_spelt(losses[begins[0]])} again and again",
            (f"{sum(bad)} losses are not numbers",),
        )
    return None


def _spelt(loss: float) -> str:
    return "NaN" if loss != loss else "infinite"


def number(loss: float) -> str:
    """A loss with enough digits to tell it from others."""
    if not isfinite(loss):
        return _spelt(loss)
    return f"{loss:.3g}" if abs(loss) < 0.1 or abs(loss) >= 1e5 else f"{loss:.4g}"


def as_read(loss: float) -> str:
    """A loss with all its digits, as the log has it."""
    return f"{loss:.12g}"


def finite(losses: Sequence[float]) -> tuple[Sequence[int], Sequence[float]]:
    """Indices and values of the finite losses."""
    if losses and isfinite(sum(losses)) and min(losses) > -LARGEST and max(losses) < LARGEST:
        return range(len(losses)), losses
    kept = [(place, loss) for place, loss in enumerate(losses) if abs(loss) < LARGEST]
    return [place for place, _ in kept], [loss for _, loss in kept]


def spread(values: Sequence[float]) -> float:
    """The noise from one loss to the next, independent of the trend of the curve."""
    steps = sorted(map(abs, map(sub, values[1:], values)))
    return NOISE * median(steps) / 2**0.5 if steps else 0.0


def smooth(values: Sequence[float], window: int) -> list[float]:
    """Running medians, as many as there are values."""
    half = window // 2
    inside = sorted(values[:half])
    found = []
    for place in range(len(values)):
        if place + half < len(values):
            insort(inside, values[place + half])
        if place - half > 0:
            inside.pop(bisect_left(inside, values[place - half - 1]))
        middle = len(inside) // 2
        found.append(inside[middle] if len(inside) % 2 else (inside[middle - 1] + inside[middle]) / 2)
    return found


def rises(losses: Sequence[float]) -> CurveMark | None:
    """The loss ends far above its beginning and its lowest level, and does not come back."""
    places, values = finite(losses)
    if not values or min(values) <= 0:
        return None  # losses of policies may move in any direction
    if len(values) < FEWEST:
        return _leaves(values, places)
    head = median(values[: max(5, len(values) // 10)])
    end = max(5, len(values) // 10)
    tail = median(values[-end:])
    if tail < 1.5 * head + 6 * 0.02 * abs(head):
        return None  # too low even for a curve without noise
    smoothed = smooth(values, max(5, len(values) // 20))
    lowest = min(smoothed)
    lowest_at = max(place for place, value in enumerate(smoothed) if value <= lowest * 1.02)
    noise = max(spread(values[: lowest_at + 1] or values), spread(values[:end]), 0.02 * abs(head))
    if tail < 1.5 * head + 6 * noise or tail < 3 * lowest or min(values[-end:]) < 1.1 * head:
        return None
    if lowest < 0.2 and tail < 1.0:
        return None  # too little to matter: the noise of a trained model
    since = next(place for place in range(lowest_at, len(values)) if smoothed[place] > 1.2 * lowest + noise)
    how = (
        f"the median of the last {end} losses is {number(tail)}, that of the first {end} {number(head)}; "
        f"the lowest loss is {number(min(values))}",
    )
    sure = tail > 5 * lowest and tail > 2 * head and head > 0.2 and lowest < 0.9 * head
    return CurveMark(places[since], "rises", how, Confidence.STRONG if sure else Confidence.SUSPECT)


def _leaves(values: Sequence[float], places: Sequence[int]) -> CurveMark | None:
    """Even a few losses show that: the first ones are alike, and all that follow are far above them."""
    for at in range(3, len(values) - 1):
        most, least = max(values[:at]), min(values[at:])
        if most < ALIKE * min(values[:at]) and least > AWAY * most:
            how = (
                f"the {at} losses before are at most {number(most)}, all that follow at least {number(least)}"
            )
            return CurveMark(places[at], "rises", (how,), Confidence.SUSPECT)
    return None


def stands_still(losses: Sequence[float], steps: Sequence[int], *, counted: bool) -> CurveMark | None:
    """The loss never left that of an untrained model, or repeats one number."""
    places, values = finite(losses)
    if len(values) < STILL_POINTS or len(values) < len(losses) or min(values) <= 0:
        return None
    begins = steps[0] <= 2 * max(1, median(there - here for here, there in itertools.pairwise(steps)))
    if steps[-1] - steps[0] < STILL_STEPS and not counted:
        return None
    head, tail = fmean(values[: len(values) // 10]), fmean(values[-(len(values) // 5) :])
    if (frozen := _frozen(values)) is not None and values[-1] > 0.9 * head:
        each = f"each of the last {len(values) - frozen} losses is {values[-1]:.6g}"
        return CurveMark(places[frozen], "is the same number in every step", (each,))
    level, noise = fmean(values), spread(values)
    # The means of its two ends may differ by this much by chance.
    within = 0.01 * head + 2.5 * noise * (10 / len(values) + 5 / len(values)) ** 0.5
    if not begins or abs(head - tail) > within or noise > 0.03 * level:
        return None
    smoothed = smooth(values, max(9, len(values) // 10))
    if min(smoothed) <= 0.985 * head - noise or max(smoothed) >= 1.03 * head + noise:
        return None
    guessing = "a model that guesses among 1000 classes" if abs(level - log(1000)) < 0.04 else ""
    if what := "a language model that learned nothing" if UNTRAINED[0] < level < UNTRAINED[1] else guessing:
        words = f"{number(level)} is the loss of {what}"
        return CurveMark(0, "stands still", (words,), Confidence.SUSPECT if counted else Confidence.STRONG)
    return None


def _frozen(values: Sequence[float]) -> int | None:
    """The index from which on all losses are one number with many digits; None if they are not."""
    last = values[-1]
    if last < 0.01 or abs(last * 100 - round(last * 100)) < 1e-9:
        return None
    first = len(values) - 1
    while first and values[first - 1] == last:
        first -= 1
    return first if len(values) - first >= STILL_POINTS else None
