"""Finds out what is wrong with curves. Equal faults of several ranks are one charge, the earliest first.

A curve with fewer than 20 losses is charged only if losses are NaN or infinite, or leave their level. The
limits are from simulated healthy trainings (tests/unit/logs/loss/test_healthy.py): falling with noise of 0 to
30 %, warm-up, restarts of the learning rate, fine-tuning at 0.01, policies, means of epochs, a few points. In
6,600 of them none was charged. 60 faults of each kind were simulated too: all rises and 58 standstills were
found.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from doctor.logs.loss.shape import CurveMark, no_numbers, rises, stands_still
from doctor.logs.model import Curve, LogCause, Party, Symptom
from doctor.model import Confidence, Remedy
from doctor.text.ranks import ranks_text

NAN, DIVERGING, STALLED = "loss-nan", "loss-diverging", "loss-stalled"
MOST_NAMED = 8


@dataclass(frozen=True, slots=True)
class _CurveFinding:
    curve: Curve
    mark: CurveMark

    @property
    def step(self) -> int:
        return self.curve.steps[self.mark.place]


def judge_curves(curves: Sequence[Curve], symptoms: Iterable[Symptom] = ()) -> tuple[LogCause, ...]:
    """The charges. With `symptoms` they have causes, checks and remedies."""
    known = {symptom.id: symptom for symptom in symptoms}
    latest = _latest(_distinct(curves))
    charges = [charge for id in _LOOKS for charge in _each(latest, id)]
    nan = [charge for charge in charges if charge.symptom == NAN]  # a loss rises before it is NaN
    return tuple(_filled(charge, known) for charge in nan or charges)


def since_of(charge: LogCause, curve: Curve) -> int | None:
    """The index in the curve where a charge begins; None if it is about another."""
    if not curve.steps or not any(same(curve.who, who) for who in charge.who):
        return None
    look = _LOOKS.get(charge.symptom or "")
    mark = look(curve) if look else None
    return mark.place if mark else None


def same(one: Party, other: Party) -> bool:
    return one == other or (one.rank is not None and one.rank == other.rank)


def _distinct(curves: Sequence[Curve]) -> list[Curve]:
    """The curves without empty ones and without those that a second file repeats."""
    found: list[Curve] = []
    known = set[object]()
    for curve in curves:
        said = (curve.who, curve.steps, *map(repr, curve.losses))  # NaN is not equal to itself
        if curve.steps and said not in known:
            known.add(said)
            found.append(curve)
    return found


def _latest(curves: Sequence[Curve]) -> list[Curve]:
    """The curve of the last start of the job, for each rank (or file, if no rank is known)."""
    found = {series_of(curve): curve for curve in curves}
    return sorted(found.values(), key=lambda each: (each.who.rank is None, each.who.rank or 0))


def series_of(curve: Curve) -> object:
    """What is the same for the curves of all starts."""
    return curve.who.rank if curve.who.rank is not None else (curve.file, curve.who)


_LOOKS: dict[str, Callable[[Curve], CurveMark | None]] = {
    NAN: lambda curve: no_numbers(curve.losses),
    DIVERGING: lambda curve: rises(curve.losses),
    STALLED: lambda curve: stands_still(curve.losses, curve.steps, counted=curve.counted),
}


def step_text(curve: Curve, place: int) -> str:
    return f"loss no. {curve.steps[place]}" if curve.counted else f"step {curve.steps[place]}"


def _each(curves: Sequence[Curve], id: str) -> list[LogCause]:
    """One charge for all ranks with the same fault; it says who was first."""
    found = [_CurveFinding(curve, mark) for curve in curves if (mark := _LOOKS[id](curve))]
    if not found:
        return []
    found.sort(key=lambda each: each.step)
    first = found[0]
    early = [each for each in found if each.step == first.step]
    how = [*first.mark.how, f"the line is {first.curve.file}:{first.curve.lines[first.mark.place]}"]
    later = [each for each in found if each not in early]
    if later and id == NAN:
        names = _names([each.curve for each in later])
        how.append(f"{names} followed at {step_text(later[0].curve, later[0].mark.place)} or later")
    healthy = [curve for curve in curves if all(curve is not each.curve for each in found)]
    if healthy and id == NAN:
        how.append(f"the loss of {_names(healthy)} stayed a number")
    whom = early if id == NAN else found
    who = _names([each.curve for each in whom])
    where = step_text(first.curve, first.mark.place)
    says = f"The loss of {who} {first.mark.words} since {where}"
    if id == STALLED and first.mark.place == 0:
        says = f"The loss of {who} {first.mark.words}: it never fell"
    sure = all(each.mark.confidence is not Confidence.SUSPECT for each in whom)
    return [
        LogCause(
            id,
            says,
            tuple(each.curve.who for each in whom),
            how=tuple(how),
            confidence=Confidence.STRONG if sure else Confidence.SUSPECT,
            count=len(whom),
        )
    ]


def _names(curves: Sequence[Curve]) -> str:
    ranks = [curve.who.rank for curve in curves if curve.who.rank is not None]
    if len(ranks) == len(curves):
        return ranks_text(ranks, most=MOST_NAMED)
    files = list(dict.fromkeys(curve.file for curve in curves))
    named = ", ".join(files[:MOST_NAMED])
    return named + (f" and {len(files) - MOST_NAMED} more" if len(files) > MOST_NAMED else "")


def _filled(charge: LogCause, known: Mapping[str, Symptom]) -> LogCause:
    symptom = known.get(charge.symptom or "")
    if symptom is None:
        return charge
    remedy = Remedy(symptom.id, symptom.remedy) if symptom.remedy else None
    return replace(charge, causes=symptom.causes, checks=symptom.checks, remedy=remedy)
