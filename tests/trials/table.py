"""The table of all trials, in Markdown that is readable as plain text."""

from __future__ import annotations

import os
import platform
import subprocess
from collections.abc import Callable, Sequence
from itertools import groupby
from math import comb
from statistics import median

from benchmarks.table import columns, kernel
from doctor import __version__
from tests.trials.outcome import Outcome

HEAD = ("fault", "trials", "detected", "culprit right", "nobody else", "95 % interval", "median", "worst")


def conditions(hosts: int, ranks: int, steps: int, framework: str, python: str) -> str:
    backend = "gloo" if framework == "torch" else "mccl"
    return (
        f"{hosts} hosts (namespaces, each with its own sshd, a second network for the ranks) × "
        f"{ranks} ranks, {steps} steps, {backend}, and the controller, "
        f"on one machine with {os.cpu_count()} cores, {kernel()}.\n"
        f"cluster-doctor {__version__}, Python {platform.python_version()}, "
        f"{framework} {_version(framework, python)}.\n"
        "The victim and the step are drawn at random for each trial. The interval (Clopper-Pearson) is "
        "that of the trials in which the fault was found, the culprit's host and rank were named, and "
        "nobody else was blamed. Latency is the time from the fault to the decision to end the run; a "
        "fault that does not end the run is reported at its end. Faults marked * come from outside the "
        "run, and those without a latency were there before it."
    )


def table(outcomes: Sequence[Outcome], order: Sequence[str]) -> str:
    def place(outcome: Outcome) -> int:
        return order.index(outcome.fault) if outcome.fault in order else len(order)

    lines = []
    for fault, group in groupby(sorted(outcomes, key=place), key=lambda outcome: outcome.fault):
        lines.append(_line(fault, list(group)))
    return columns(HEAD, lines)


def _line(fault: str, trials: Sequence[Outcome]) -> list[str]:
    def count(holds: Callable[[Outcome], bool]) -> str:
        return f"{sum(map(holds, trials))}/{len(trials)}"

    low, high = interval(sum(trial.right for trial in trials), len(trials))
    taken = [trial.latency for trial in trials if trial.latency is not None]
    if fault.startswith("healthy"):
        alarms = sum(not trial.right for trial in trials)
        low, high = interval(alarms, len(trials))
        return [fault, str(len(trials)), f"{alarms} false alarms", "", "", _percent(low, high), "", ""]
    return [
        fault,
        str(len(trials)),
        count(lambda trial: trial.detected),
        count(lambda trial: trial.named),
        count(lambda trial: trial.alone),
        _percent(low, high),
        f"{median(taken):.2f} s" if taken else "at the end",
        f"{max(taken):.2f} s" if taken else "",
    ]


def _percent(low: float, high: float) -> str:
    return f"{100 * low:.1f}-{100 * high:.1f} %"


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


def _version(framework: str, python: str) -> str:
    """The version that this interpreter has."""
    ask = f"import importlib.metadata as m; print(m.version({framework!r}))"
    return subprocess.run([python, "-c", ask], check=True, capture_output=True, text=True).stdout.strip()
