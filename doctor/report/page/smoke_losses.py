"""The losses of a smoke run as drawings: each replica, and the curve of a healthy run."""

from collections.abc import Sequence
from dataclasses import replace
from math import nan
from statistics import fmean

from doctor.facts.smoke import JudgedRun
from doctor.report.page.losses import LossDrawing, LossLine, LossRole, axes, is_number
from doctor.report.page.smoke import RunNumbers, healthy_curve, is_enough, worst_cell
from doctor.smoke.judge.loss import GAP, LossSummary, loss_summary, replica_curves
from doctor.smoke.onhost.corpus import FLOOR
from doctor.text.ranks import ranks_text

MOST_LINES = 8
"""If there are more replicas, their mean is drawn, and outliers by name."""
MOST_ODD = 4
MOST_CELLS = 4


def loss_drawings(run: JudgedRun, id: str) -> tuple[LossDrawing, ...]:
    """One drawing per cell; if there are many cells, those that learned the least."""
    numbers = range(len(run.plan.cells))
    drops = {cell: loss_summary(run.result, cell).drop for cell in numbers}
    worst = sorted(numbers, key=lambda cell: (drops[cell] is not None, drops[cell] or 0.0))[:MOST_CELLS]
    found = (loss_drawing(run, cell, f"{id}-{cell}") for cell in sorted(worst))
    return tuple(each for each in found if each)


def loss_drawing(run: JudgedRun, cell: int | None = None, id: str = "losses") -> LossDrawing | None:
    """The drawing of a cell, by default the one that learned the least. None without two steps or a loss."""
    cell = worst_cell(run) if cell is None else cell
    replicas = [_line(run, cell, dp, curve) for dp, curve in enumerate(replica_curves(run.result, cell))]
    if len(replicas[0].steps) < 2 or not any(line.known for line in replicas):
        return None
    odd, summary = _odd(replicas), loss_summary(run.result, cell)
    # A fault of the loss belongs to the cell that learned the least.
    good = False if RunNumbers(run).loss_charged and cell == worst_cell(run) else is_enough(summary)
    if good is False and not odd:
        shown = [replace(_mean(replicas, f"{len(replicas)} replicas"), role=LossRole.GUILTY)]
    else:
        far = [replace(replicas[dp], role=LossRole.GUILTY) for dp in odd[:MOST_ODD]]
        plain = [line for dp, line in enumerate(replicas) if dp not in odd and line.known]
        if len(plain) > MOST_LINES:
            plain = [_mean(plain, "the others" if odd else f"{len(plain)} replicas")]
        shown = [*reversed(plain), *reversed(far)]
    every = range(run.plan.steps)
    healthy = LossLine("a healthy run", every, healthy_curve(run, cell), LossRole.HEALTHY)
    lines = (LossLine("least possible", every, [FLOOR] * len(every), LossRole.LEAST), healthy, *shown)
    said = _in_words(run, cell, replicas, odd, summary)
    return LossDrawing(lines, axes(lines), said, _judged(summary), good, id=id)


def _line(run: JudgedRun, cell: int, dp: int, curve: Sequence[float | None]) -> LossLine:
    """The line of a replica, named by its ranks."""
    ranks = run.plan.cells[cell]
    name = ranks_text([ranks[place] for place in run.plan.shape(cell).replica(dp)], most=2)
    return LossLine(name, range(len(curve)), [nan if loss is None else loss for loss in curve])


def _mean(lines: Sequence[LossLine], name: str) -> LossLine:
    steps = zip(*(line.losses for line in lines), strict=True)
    losses = ([loss for loss in step if is_number(loss)] for step in steps)
    name = name if len(lines) > 1 else lines[0].name
    return LossLine(name, lines[0].steps, [fmean(step) if step else nan for step in losses])


def _odd(replicas: Sequence[LossLine]) -> list[int]:
    """The replicas whose last ten losses lie farther above the mean than in healthy runs, worst first."""
    known = {dp: fmean(line.known[-10:]) for dp, line in enumerate(replicas) if line.known}
    if len(known) < 2:
        return []
    whole = sum(known.values())
    gaps = {dp: end - (whole - end) / (len(known) - 1) for dp, end in known.items()}
    return sorted((dp for dp, gap in gaps.items() if gap > GAP), key=lambda dp: -gaps[dp])


def _in_words(
    run: JudgedRun, cell: int, replicas: Sequence[LossLine], odd: Sequence[int], summary: LossSummary
) -> str:
    known = [loss for loss in summary.curve if loss is not None]
    which = f"Cell {cell}: the" if len(run.plan.cells) > 1 else "The"
    said = f"{which} loss of {len(replicas)} replica{'' if len(replicas) == 1 else 's'} "
    course = f"went from {known[0]:.2f} to {known[-1]:.2f} in {summary.steps} steps." if known else ""
    said += course or "was never a finite number."
    lost = [dp for dp, line in enumerate(replicas) if len(line.known) < len(line.losses)]
    for what, found in (("Far above the others", odd), ("Losses that are not numbers", lost)):
        names = ", ".join(replicas[dp].name for dp in found[:MOST_ODD])
        more = f" and {len(found) - MOST_ODD} more" if len(found) > MOST_ODD else ""
        said += f" {what}: {names}{more}." if found else ""
    return f"{said} The least possible is {FLOOR:.2f}."


def _judged(summary: LossSummary) -> str:
    if None in summary.curve:
        return ""
    if summary.drop is None or summary.limit is None:
        return "too few steps to say whether it is good"
    return f"{100 * summary.drop:.0f} % of the way, at least {100 * summary.limit:.0f} % is needed"
