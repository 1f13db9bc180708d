"""Chooses the curves that are drawn: the guilty ones and some others."""

from collections.abc import Sequence

from doctor.logs.loss.judge import same, series_of, since_of
from doctor.logs.loss.shape import as_read
from doctor.logs.model import Curve, LogCause
from doctor.report.page.losses import LossDrawing, LossLine, LossRole, axes

MOST_CURVES = 8
FEW = 4
"""The least number of healthy losses that are drawn: a line through two points shows nothing."""


def drawing(curves: Sequence[Curve], charges: Sequence[LogCause]) -> LossDrawing | None:
    """The drawing; None if there is nothing to see, such as a few healthy losses."""
    last = {series_of(curve): curve for curve in curves if curve.steps}
    of_losses = [charge for charge in charges if (charge.symptom or "").startswith("loss-")]
    blamed = [who for charge in of_losses for who in charge.who]
    guilty = {key: any(same(curve.who, who) for who in blamed) for key, curve in last.items()}
    keys = sorted(last, key=lambda key: (not guilty[key], last[key].who.rank or 0))
    shown = [last[key] for key in keys[:MOST_CURVES]]
    lines = tuple(_line(last[key], guilty[key]) for key in reversed(keys[:MOST_CURVES]))
    if sum(len(line.known) for line in lines) < (2 if any(guilty.values()) else FEW):
        return None
    upright, left_out = axes(lines), max(len(keys) - MOST_CURVES, 0)
    said = [charge.says.rstrip(".") for charge in of_losses]
    if not said:
        line = next(each for each in reversed(lines) if each.known)
        said = [f"The loss of {line.name} went from {as_read(line.known[0])} to {as_read(line.known[-1])}"]
    said += [f"{left_out} more curves are not drawn"] if left_out else []
    said += ["The axis is logarithmic"] if upright.steep else []
    begins = ((curve, _since(curve, charges)) for curve in shown)
    return LossDrawing(
        lines,
        upright,
        ". ".join(said) + ".",
        mark=min([curve.steps[place] for curve, place in begins if place is not None], default=None),
        left_out=left_out,
        across="losses, as they were printed" if shown[0].counted else "step",
    )


def hardly_falls(line: LossLine) -> bool:
    """Whether it has not halved, and is no lower than halfway: no charge, but perhaps a question."""
    known = line.known
    return len(known) >= FEW and known[-1] > max(known[0] / 2, known[len(known) // 2])


def _line(curve: Curve, guilty: bool) -> LossLine:
    rank, file = curve.who.rank, curve.file
    name = f"rank {rank}" if rank is not None else file.rpartition("/")[2] or file
    return LossLine(name, curve.steps, curve.losses, LossRole.GUILTY if guilty else LossRole.PLAIN)


def _since(curve: Curve, charges: Sequence[LogCause]) -> int | None:
    """The index of the guilty step in the curve."""
    places = (since_of(charge, curve) for charge in charges)
    return next((place for place in places if place is not None), None)
