"""How the loss fell, as a drawing: each replica, and where a healthy run would be."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean

from doctor.facts.smoke import JudgedRun
from doctor.report.html.markup import NOTHING, Html, join, scrolling, tag
from doctor.report.smoke import healthy_curve
from doctor.smoke.judge.loss import GAP, loss_summary, replica_curves
from doctor.smoke.onhost.corpus import FLOOR
from doctor.text.ranks import ranks_text

WIDTH, HEIGHT = 760, 290
LEFT, RIGHT, TOP, BOTTOM = 36, 130, 12, 38
MOST_CURVES = 8
"""Of more replicas the span is drawn, and those that are far off by name."""
MOST_ODD = 4
MOST_CELLS = 4
HIGHEST = 3.0
"""Times the first loss: what is above leaves the drawing."""
Curve = Sequence[float | None]


@dataclass(frozen=True, slots=True)
class _Axes:
    steps: int
    most: float

    def x(self, step: float) -> float:
        return LEFT + step / max(self.steps - 1, 1) * (WIDTH - LEFT - RIGHT)

    def y(self, loss: float) -> float:
        return TOP + (1 - min(loss, self.most) / self.most) * (HEIGHT - TOP - BOTTOM)

    def points(self, curve: Curve) -> str:
        known = ((step, loss) for step, loss in enumerate(curve) if loss is not None)
        return " ".join(f"{self.x(step):.1f},{self.y(loss):.1f}" for step, loss in known)


def curves_part(run: JudgedRun, id: str) -> Html:
    """A drawing for each cell; of many cells those that learned the least."""
    numbers = range(len(run.plan.cells))
    drops = {cell: loss_summary(run.result, cell).drop for cell in numbers}
    worst = sorted(numbers, key=lambda cell: (drops[cell] is not None, drops[cell] or 0.0))[:MOST_CELLS]
    drawn = [_figure(run, cell, f"{id}-{cell}") for cell in sorted(worst)]
    left = len(numbers) - len(worst)
    return join((*drawn, tag("p", f"{left} more cells learned more than these.") if left else NOTHING))


def _figure(run: JudgedRun, cell: int, id: str) -> Html:
    curves = replica_curves(run.result, cell)
    if len(curves[0]) < 2 or not any(map(_numbers, curves)):
        return NOTHING
    should = healthy_curve(run, cell)
    odd = _odd(curves)
    said = _in_words(run, cell, curves, odd)
    axes = _Axes(run.plan.steps, _top(curves, should))
    drawing = tag(
        "svg",
        tag("title", f"Loss over {run.plan.steps} steps", id=f"{id}-title"),
        tag("desc", said, id=f"{id}-desc"),
        _grid(axes),
        _floor(axes),
        tag("polyline", points=axes.points(should), class_="expected"),
        *_lines(axes, curves, odd),
        _names(run, cell, axes, curves, should, odd),
        viewBox=f"0 0 {WIDTH} {HEIGHT}",
        role="img",
        aria_labelledby=f"{id}-title {id}-desc",
    )
    return tag("figure", scrolling("Loss", drawing), tag("figcaption", said))


def _odd(curves: Sequence[Curve]) -> list[int]:
    """The replicas that end, over ten steps, farther above the mean than healthy ones do; the worst first."""
    known = {dp: fmean(end) for dp, curve in enumerate(curves) if (end := _numbers(curve)[-10:])}
    if len(known) < 2:
        return []
    gaps = {dp: known[dp] - fmean(end for other, end in known.items() if other != dp) for dp in known}
    return sorted((dp for dp, gap in gaps.items() if gap > GAP), key=lambda dp: -gaps[dp])


def _in_words(run: JudgedRun, cell: int, curves: Sequence[Curve], odd: Sequence[int]) -> str:
    summary = loss_summary(run.result, cell)
    known = [loss for loss in summary.curve if loss is not None]
    which = f"Cell {cell}: " if len(run.plan.cells) > 1 else ""
    said = f"{which}the loss of {len(curves)} replica{'' if len(curves) == 1 else 's'} went from "
    said += f"{known[0]:.2f} to {known[-1]:.2f} in {summary.steps} steps" if known else "no number to none"
    said += f", {summary.drop:.0%} of the way to the least possible ({FLOOR:.2f})" if summary.drop else ""
    said += f"; {summary.limit:.0%} is needed" if summary.drop and summary.limit else ""
    lost = [dp for dp, curve in enumerate(curves) if None in curve]
    said = f"{said[:1].upper()}{said[1:]}."
    for what, found in (("Far above the others", odd), ("Losses that are no numbers", lost)):
        names = ", ".join(_name(run, cell, dp) for dp in found[:MOST_ODD])
        more = f" and {len(found) - MOST_ODD} more" if len(found) > MOST_ODD else ""
        said += f" {what}: {names}{more}." if found else ""
    return f"{said} Dashed: a healthy run."


def _name(run: JudgedRun, cell: int, dp: int) -> str:
    """A replica by its ranks."""
    members = run.plan.cells[cell]
    ranks = members[dp * run.plan.tp : (dp + 1) * run.plan.tp]
    return ranks_text(ranks, most=2)


def _top(curves: Sequence[Curve], should: Sequence[float]) -> float:
    highest = max(loss for curve in curves for loss in curve if loss is not None)
    return float(math.ceil(max(should[0] * 1.1, min(highest, HIGHEST * should[0]))))


def _grid(axes: _Axes) -> Html:
    every = max(1, math.ceil(axes.most / 6))
    lines = []
    for loss in range(0, int(axes.most) + 1, every):
        y = f"{axes.y(loss):.1f}"
        lines.append(tag("line", x1=LEFT, x2=WIDTH - RIGHT, y1=y, y2=y, class_="grid"))
        lines.append(tag("text", str(loss), x=LEFT - 8, y=f"{axes.y(loss) + 4:.1f}", text_anchor="end"))
    stride = next(each for each in (1, 2, 5, 10, 20, 50, 100, 500, 10**4, 10**9) if axes.steps <= 8 * each)
    for step in range(0, axes.steps, stride):
        x = f"{axes.x(step):.1f}"
        lines.append(tag("text", str(step), x=x, y=HEIGHT - BOTTOM + 18, text_anchor="middle"))
    middle = f"{(LEFT + WIDTH - RIGHT) / 2:.0f}"
    lines.append(tag("text", "step", x=middle, y=HEIGHT - 3, text_anchor="middle"))
    return tag("g", *lines, aria_hidden="true")


def _floor(axes: _Axes) -> Html:
    y = f"{axes.y(FLOOR):.1f}"
    return tag("line", x1=LEFT, x2=WIDTH - RIGHT, y1=y, y2=y, class_="floor")


def _lines(axes: _Axes, curves: Sequence[Curve], odd: Sequence[int]) -> list[Html]:
    plain = [curve for dp, curve in enumerate(curves) if dp not in odd and _numbers(curve)]
    drawn: list[Html] = []
    if len(plain) > MOST_CURVES:
        steps = [[loss for loss in losses if loss is not None] for losses in zip(*plain, strict=True)]
        up = axes.points([max(losses, default=None) for losses in steps])
        down = axes.points([min(losses, default=None) for losses in steps]).split()
        drawn.append(tag("polygon", points=" ".join((up, *reversed(down))), class_="spread"))
        plain = [[fmean(losses) if losses else None for losses in steps]]
    kind = "curve many" if len(plain) > 1 else "curve"
    drawn += [tag("polyline", points=axes.points(curve), class_=kind) for curve in plain]
    drawn += [tag("polyline", points=axes.points(curves[dp]), class_="curve odd") for dp in odd[:MOST_ODD]]
    return drawn


def _names(
    run: JudgedRun,
    cell: int,
    axes: _Axes,
    curves: Sequence[Curve],
    should: Sequence[float],
    odd: Sequence[int],
) -> Html:
    """What each line is, beside its end; one below the other where they would overlap."""
    plain = [dp for dp, curve in enumerate(curves) if dp not in odd and _numbers(curve)]
    wanted = [(should[-1], "a healthy run", "ink"), (FLOOR, "least possible", "")]
    wanted += [(_numbers(curves[dp])[-1], _name(run, cell, dp), "odd-name") for dp in odd[:MOST_ODD]]
    if plain:
        end = fmean(_numbers(curves[dp])[-1] for dp in plain)
        many = "the others" if odd else f"{len(plain)} replicas"
        wanted.append((end, many if len(plain) > 1 else _name(run, cell, plain[0]), "name"))
    names, free = [], 0.0
    heights = sorted((axes.y(loss), name, kind) for loss, name, kind in wanted)
    for number, (y, name, kind) in enumerate(heights):
        below = 18 * (len(heights) - number - 1)
        y = max(free, min(y + 4, HEIGHT - BOTTOM + 4 - below))
        free = y + 18
        names.append(tag("text", name, x=WIDTH - RIGHT + 8, y=f"{y:.1f}", class_=kind or None))
    return tag("g", *names, aria_hidden="true")


def _numbers(curve: Curve) -> list[float]:
    """Its losses that are numbers."""
    return [loss for loss in curve if loss is not None]
