"""A drawing of losses as SVG: each line with its name at the end, and the guilty step."""

from collections.abc import Iterator

from doctor.report.html.markup import Html, join, scrolling, tag
from doctor.report.page.losses import LossDrawing, LossLine, LossRole, is_number

WIDTH, HEIGHT = 760, 290
LEFT, RIGHT, TOP, BOTTOM = 72, 130, 12, 38
MOST_POINTS = 600
LONGEST = 18
"""The most characters of a name beside its line."""
TICKS = 8
ROOM = 40
"""Labels of steps closer than this to the guilty step are left out."""
CLASSES = {
    LossRole.PLAIN: ("curve", "name"),
    LossRole.GUILTY: ("curve odd", "odd-name"),
    LossRole.HEALTHY: ("expected", "ink"),
    LossRole.LEAST: ("floor", None),
}
"""The CSS classes of a line and of its name."""


def losses_figure(drawing: LossDrawing) -> Html:
    judged = {True: "Good: ", False: "Not good: ", None: ""}[drawing.is_good] + drawing.judged
    said = f"{drawing.says} {judged[:1].upper()}{judged[1:]}." if judged else drawing.says
    many = sum(line.role is LossRole.PLAIN for line in drawing.lines) > 1
    picture = tag(
        "svg",
        tag("title", drawing.title, id=f"{drawing.id}-title"),
        tag("desc", said, id=f"{drawing.id}-desc"),
        tag("g", *_grid(drawing), aria_hidden="true"),
        *(_line(drawing, line, many) for line in drawing.lines),
        tag("g", *_mark(drawing), *_names(drawing), aria_hidden="true"),
        viewBox=f"0 0 {WIDTH} {HEIGHT}",
        role="img",
        aria_labelledby=f"{drawing.id}-title {drawing.id}-desc",
    )
    return tag("figure", scrolling(drawing.title, picture), tag("figcaption", said))


def _x(drawing: LossDrawing, step: int) -> float:
    return LEFT + drawing.axes.across(step) * (WIDTH - LEFT - RIGHT)


def _y(drawing: LossDrawing, loss: float) -> float:
    return TOP + (1 - drawing.axes.height(loss)) * (HEIGHT - TOP - BOTTOM)


def _line(drawing: LossDrawing, line: LossLine, many: bool) -> Html:
    """The curve, with gaps where losses are not numbers. It tells its name if one points at it."""
    kind, _ = CLASSES[line.role]
    kind = "curve many" if many and line.role is LossRole.PLAIN else kind
    points: list[tuple[float, float | None]] = [
        (_x(drawing, step), loss if is_number(loss) else None)
        for step, loss in zip(line.steps, line.losses, strict=True)
    ]
    if len(points) > MOST_POINTS:
        values, _ = drawing.columns(line, MOST_POINTS)
        width = (WIDTH - LEFT - RIGHT) / (MOST_POINTS - 1)
        points = [(LEFT + place * width, value) for place, value in enumerate(values)]
    parts: list[list[str]] = [[]]
    for x, value in points:
        if value is None:
            parts.append([])
        else:
            parts[-1].append(f"{x:.1f},{_y(drawing, value):.1f}")
    drawn = [part * 2 if len(part) == 1 else part for part in parts if part]
    name = tag("title", line.name)
    return join(tag("polyline", name, points=" ".join(part), class_=kind) for part in drawn)


def _grid(drawing: LossDrawing) -> Iterator[Html]:
    axes = drawing.axes
    for height in (0.0, 0.25, 0.5, 0.75, 1.0):
        y = TOP + (1 - height) * (HEIGHT - TOP - BOTTOM)
        yield tag("line", x1=LEFT, x2=WIDTH - RIGHT, y1=f"{y:.1f}", y2=f"{y:.1f}", class_="grid")
        yield tag("text", axes.label(height), x=LEFT - 8, y=f"{y + 4:.1f}", text_anchor="end")
    for step in axes.ticks(TICKS):
        if drawing.mark is None or abs(_x(drawing, step) - _x(drawing, drawing.mark)) > ROOM:
            yield _step(drawing, step)
    yield tag("text", drawing.across, x=(LEFT + WIDTH - RIGHT) // 2, y=HEIGHT - 3, text_anchor="middle")


def _step(drawing: LossDrawing, step: int, kind: str | None = None) -> Html:
    x = f"{_x(drawing, step):.1f}"
    return tag("text", drawing.tick(step), x=x, y=HEIGHT - BOTTOM + 18, text_anchor="middle", class_=kind)


def _mark(drawing: LossDrawing) -> Iterator[Html]:
    if drawing.mark is not None:
        x = f"{_x(drawing, drawing.mark):.1f}"
        yield tag("line", x1=x, x2=x, y1=TOP, y2=HEIGHT - BOTTOM, class_="expected")
        yield _step(drawing, drawing.mark, "odd-name")


def _names(drawing: LossDrawing) -> Iterator[Html]:
    """The names beside the ends of the lines, moved apart if they would overlap."""
    ends = [(_y(drawing, line.known[-1]), line) for line in drawing.lines if line.known]
    ends.sort(key=lambda end: end[0])
    free = 0.0
    for place, (y, line) in enumerate(ends):
        y = max(free, min(y + 4, HEIGHT - BOTTOM + 4 - 18 * (len(ends) - place - 1)))
        free = y + 18
        name = line.name if len(line.name) <= LONGEST else "…" + line.name[1 - LONGEST :]
        yield tag("text", name, x=WIDTH - RIGHT + 8, y=f"{y:.1f}", class_=CLASSES[line.role][1])
