"""The curves in HTML, drawn as the report draws those of its own short training."""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite

from doctor.logs.loss.drawn import Drawing, DrawnCurve, columns, drawing
from doctor.logs.loss.shape import LARGEST, number
from doctor.logs.model import Charge, Curve
from doctor.report.html.curves import BOTTOM, HEIGHT, LEFT, RIGHT, TOP, WIDTH
from doctor.report.html.markup import NOTHING, Html, join, scrolling, tag

MOST_POINTS = 600
INDENT = LEFT + 24
"""Losses have more digits than those of the short training."""


def losses_figure(curves: Sequence[Curve], charges: Sequence[Charge], id: str = "losses") -> Html:
    """Nothing where there are no two losses to draw."""
    drawn = drawing(curves, charges)
    if drawn is None:
        return NOTHING
    said = _in_words(drawn, charges)
    many = sum(not each.guilty for each in drawn.curves) > 1
    picture = tag(
        "svg",
        tag("title", "Losses", id=f"{id}-title"),
        tag("desc", said, id=f"{id}-desc"),
        _grid(drawn),
        *(_line(drawn, each, many) for each in drawn.curves),
        _mark(drawn),
        _names(drawn),
        viewBox=f"0 0 {WIDTH} {HEIGHT}",
        role="img",
        aria_labelledby=f"{id}-title {id}-desc",
    )
    return tag("figure", scrolling("Losses", picture), tag("figcaption", said))


def _x(drawn: Drawing, step: int) -> float:
    return INDENT + drawn.across(step) * (WIDTH - INDENT - RIGHT)


def _y(drawn: Drawing, loss: float) -> float:
    return TOP + (1 - drawn.height(loss)) * (HEIGHT - TOP - BOTTOM)


def _in_words(drawn: Drawing, charges: Sequence[Charge]) -> str:
    said = [charge.says.rstrip(".") for charge in charges if (charge.symptom or "").startswith("loss-")]
    if not said:
        known = [loss for loss in drawn.curves[-1].curve.losses if isfinite(loss)]
        said = [f"The loss of {drawn.curves[-1].name} went from {number(known[0])} to {number(known[-1])}"]
    if drawn.left_out:
        said.append(f"{drawn.left_out} more curves are not drawn")
    if drawn.steep:
        said.append("The axis is logarithmic")
    return ". ".join(said) + "."


def _line(drawn: Drawing, each: DrawnCurve, many: bool) -> Html:
    """A gap where losses are no numbers."""
    kind = "curve odd" if each.guilty else "curve many" if many else "curve"
    parts: list[list[str]] = [[]]
    if len(each.curve.steps) > MOST_POINTS:
        values, _ = columns(drawn, each, MOST_POINTS)
        width = (WIDTH - INDENT - RIGHT) / (MOST_POINTS - 1)
        points = [(INDENT + place * width, value) for place, value in enumerate(values)]
    else:
        kept = zip(each.curve.steps, each.curve.losses, strict=True)
        points = [
            (_x(drawn, step), loss if isfinite(loss) and abs(loss) < LARGEST else None) for step, loss in kept
        ]
    for x, value in points:
        if value is None:
            parts.append([])
        else:
            parts[-1].append(f"{x:.1f},{_y(drawn, value):.1f}")
    lines = [part * 2 if len(part) == 1 else part for part in parts if part]
    return join(tag("polyline", points=" ".join(part), class_=kind) for part in lines)


def _grid(drawn: Drawing) -> Html:
    lines = []
    for share in (0.0, 0.25, 0.5, 0.75, 1.0):
        loss = drawn.at(share)
        y = _y(drawn, loss)
        lines.append(tag("line", x1=INDENT, x2=WIDTH - RIGHT, y1=f"{y:.1f}", y2=f"{y:.1f}", class_="grid"))
        lines.append(tag("text", number(loss), x=INDENT - 8, y=f"{y + 4:.1f}", text_anchor="end"))
    for step, anchor in ((drawn.first, "start"), (drawn.last, "end")):
        x = f"{_x(drawn, step):.1f}"
        lines.append(tag("text", f"{step:,}", x=x, y=HEIGHT - BOTTOM + 18, text_anchor=anchor))
    middle = f"{(INDENT + WIDTH - RIGHT) / 2:.0f}"
    word = "losses, as they were printed" if drawn.curves[0].curve.counted else "step"
    lines.append(tag("text", word, x=middle, y=HEIGHT - 3, text_anchor="middle"))
    return tag("g", *lines, aria_hidden="true")


def _mark(drawn: Drawing) -> Html:
    if drawn.mark is None:
        return NOTHING
    x = f"{_x(drawn, drawn.mark):.1f}"
    line = tag("line", x1=x, x2=x, y1=TOP, y2=HEIGHT - BOTTOM, class_="expected")
    label = tag(
        "text", f"{drawn.mark:,}", x=x, y=HEIGHT - BOTTOM + 18, text_anchor="middle", class_="odd-name"
    )
    return tag("g", line, label, aria_hidden="true")


def _names(drawn: Drawing) -> Html:
    """Beside the ends of the lines; one below the other where they would overlap."""
    ends = []
    for each in drawn.curves:
        known = [loss for loss in each.curve.losses if isfinite(loss) and abs(loss) < LARGEST]
        if known:
            ends.append((_y(drawn, known[-1]), each))
    ends.sort(key=lambda end: end[0])
    names, free = [], 0.0
    for place, (y, each) in enumerate(ends):
        y = max(free, min(y + 4, HEIGHT - BOTTOM + 4 - 18 * (len(ends) - place - 1)))
        free = y + 18
        kind = "odd-name" if each.guilty else "name"
        shown = each.name if len(each.name) <= 18 else "…" + each.name[-17:]
        names.append(tag("text", shown, x=WIDTH - RIGHT + 8, y=f"{y:.1f}", class_=kind))
    return tag("g", *names, aria_hidden="true")
