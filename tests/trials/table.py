"""The table of all trials, in Markdown that is readable as plain text."""

from collections import Counter
from collections.abc import Callable, Sequence
from math import comb
from statistics import median

from benchmarks.table import columns
from tests.trials.outcome import VERDICTS, Outcome

HEAD = ("kind", "trials", *VERDICTS, "right, 95 %", "falsely, 95 %", "latency", "longest")


def table(
    outcomes: Sequence[Outcome], order: Sequence[str], total: Callable[[str], str] = lambda _: "all"
) -> str:
    """A row for each kind in this order, others at the end, and then their sums. `total`: the name of the sum
    to which the kind of this name belongs.
    """
    names = list(dict.fromkeys(outcome.fault for outcome in outcomes))
    names.sort(key=lambda name: order.index(name) if name in order else len(order))
    rows = [_row(name, [each for each in outcomes if each.fault == name]) for name in names]
    titles = sorted({total(name) for name in names})
    sums = [_row(title, [each for each in outcomes if total(each.fault) == title]) for title in titles]
    return columns(HEAD, [*rows, *sums])


def _row(name: str, trials: Sequence[Outcome]) -> list[str]:
    count, many = Counter(trial.verdict for trial in trials), len(trials)
    low, high = interval(count["right"], many)
    _, most = interval(count["falsely"], many)
    taken = [trial.latency for trial in trials if trial.latency is not None]
    return [
        name,
        str(many),
        *(str(count[verdict]) for verdict in VERDICTS),
        f"{100 * low:.1f}-{100 * high:.1f} %",
        f"at most {100 * most:.1f} %",
        f"{median(taken):.2f} s" if taken else "",
        f"{max(taken):.2f} s" if taken else "",
    ]


def interval(hits: int, trials: int, doubt: float = 0.05) -> tuple[float, float]:
    """The exact interval of Clopper and Pearson for a share with `hits` in `trials`."""

    def at_least(share: float) -> float:
        return sum(comb(trials, k) * share**k * (1 - share) ** (trials - k) for k in range(hits, trials + 1))

    def at_most(share: float) -> float:
        return sum(comb(trials, k) * share**k * (1 - share) ** (trials - k) for k in range(hits + 1))

    low = 0.0 if not hits else _root(lambda share: at_least(share) < doubt / 2)
    high = 1.0 if hits == trials else _root(lambda share: at_most(share) > doubt / 2)
    return low, high


def _root(below: Callable[[float], bool]) -> float:
    """The point where a condition that holds at 0 stops holding."""
    low, high = 0.0, 1.0
    for _ in range(50):
        middle = (low + high) / 2
        low, high = (middle, high) if below(middle) else (low, middle)
    return low
