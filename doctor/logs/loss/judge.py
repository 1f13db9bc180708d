"""Finds out what is wrong with curves. Equal faults of several ranks are one charge, the earliest first.

A curve with fewer than 20 losses is charged only if losses are NaN or infinite. The limits are from
simulated healthy trainings (tests/unit/logs/loss/test_healthy.py): falling with noise of 0 to 30 %, warm-up,
restarts of the learning rate, fine-tuning at 0.01, policies, means of epochs, a few points, losses of ranks.
In 6,600 of them none was charged with certainty, and one was suspected: a training that continued from a
checkpoint and, by chance, had the loss of a model that guesses among ten classes.

60 faults of each kind were simulated too. All rises, parting ranks and slower steps were found, as were 58
standstills and 36 spikes of 4 to 8 times the loss: those in curves with little noise.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import isfinite
from operator import eq

from doctor.logs.loss.curve_split import families, parting
from doctor.logs.loss.pace import slowdown
from doctor.logs.loss.shape import CurveMark, no_numbers, number, rises, spikes, stands_still
from doctor.logs.model import Curve, LogCause, Party, Role, Symptom
from doctor.model import Confidence, Remedy
from doctor.text.ranks import ranks_text

NAN, DIVERGING, STALLED, SPIKING = "loss-nan", "loss-diverging", "loss-stalled", "loss-spiking"
DISAGREE, SLOWER = "loss-ranks-disagree", "loss-slower"
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
    curves = _distinct(curves)
    latest = _latest(curves)
    charges = [
        *_each(latest, NAN),
        *_disagree(latest),
        *(charge for id in _LOOKS if id != NAN for charge in _each(latest, id)),
    ]
    return tuple(_filled(charge, known) for charge in _settled(charges))


def since_of(charge: LogCause, curve: Curve, curves: Sequence[Curve] = ()) -> int | None:
    """The index in the curve where a charge begins; None if it is about another. `curves` are all curves."""
    if not curve.steps or not any(same(curve.who, who) for who in charge.who):
        return None
    if charge.symptom == DISAGREE:
        parted = [found for group in _groups(_latest(_distinct(curves))) if (found := parting(group))]
        return next((curve.steps.index(each.step) for each in parted if each.step in curve.steps), None)
    look = _LOOKS.get(charge.symptom or "")
    mark = look(curve) if look else None
    return mark.place if mark else None


def same(one: Party, other: Party) -> bool:
    return one == other or (one.rank is not None and one.rank == other.rank)


def _distinct(curves: Sequence[Curve]) -> list[Curve]:
    """The curves without empty ones and without those that a second file repeats."""
    found: list[Curve] = []
    known: defaultdict[tuple[object, ...], list[Curve]] = defaultdict(list)
    for curve in curves:
        alike = known[curve.who, len(curve.steps)]
        if curve.steps and not any(_repeats(curve, each) for each in alike):
            alike.append(curve)
            found.append(curve)
    return found


def _repeats(one: Curve, other: Curve) -> bool:
    """NaN is not equal to itself, but to repeat it is written alike."""
    return one.steps == other.steps and all(map(eq, map(repr, one.losses), map(repr, other.losses)))


def _latest(curves: Sequence[Curve]) -> list[Curve]:
    """The curve of the last start of the job, for each rank (or file, if no rank is known)."""
    found: dict[object, Curve] = {}
    for curve in curves:
        found[curve.who.rank if curve.who.rank is not None else (curve.file, curve.who)] = curve
    return sorted(found.values(), key=lambda each: (each.who.rank is None, each.who.rank or 0))


def _still(curve: Curve) -> CurveMark | None:
    return stands_still(curve.losses, curve.steps, counted=curve.counted)


def _spiking(curve: Curve) -> CurveMark | None:
    places = spikes(curve.losses)
    if not places:
        return None
    steps = ", ".join(step_text(curve, place) for place in places[:5])
    more = f" and {len(places) - 5} more" if len(places) > 5 else ""
    worst = max(places, key=lambda place: curve.losses[place])
    how = (
        f"{len(places)} losses are far above those around them: {steps}{more}",
        f"the highest is {number(curve.losses[worst])} at {step_text(curve, worst)}",
    )
    return CurveMark(places[0], "spikes", how, Confidence.SUSPECT)


def _slower(curve: Curve) -> CurveMark | None:
    found = slowdown(curve)
    if found is None:
        return None
    how = (
        f"the median was {seconds(found.before)} a step before and is {seconds(found.after)} since, "
        f"{found.after / found.before:.1f} times as long",
    )
    return CurveMark(found.place, "takes longer for each step", how, Confidence.SUSPECT)


_LOOKS: dict[str, Callable[[Curve], CurveMark | None]] = {
    NAN: lambda curve: no_numbers(curve.losses),
    DIVERGING: lambda curve: rises(curve.losses),
    STALLED: _still,
    SPIKING: _spiking,
    SLOWER: _slower,
}


def seconds(value: float) -> str:
    return f"{value * 1000:.3g} ms" if value < 1 else f"{value:.3g} s"


def step_text(curve: Curve, place: int) -> str:
    return f"loss no. {curve.steps[place]:,}" if curve.counted else f"step {curve.steps[place]:,}"


def place_text(curve: Curve, place: int) -> str:
    return f"{curve.file}:{curve.lines[place]}" if place < len(curve.lines) else curve.file


def _each(curves: Sequence[Curve], id: str) -> list[LogCause]:
    """One charge for all ranks with the same fault; it says who was first."""
    found = [_CurveFinding(curve, mark) for curve in curves if (mark := _LOOKS[id](curve))]
    if not found:
        return []
    found.sort(key=lambda each: each.step)
    first = found[0]
    early = [each for each in found if each.step == first.step and _comparable(each.curve, first.curve)]
    how = [*first.mark.how, f"the line is {place_text(first.curve, first.mark.place)}"]
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
    if id == SPIKING:
        says = f"Single losses of {who} are far above the others, first at {where}"
    if id == SLOWER:
        says = f"Steps of {who} take longer since {where}"
    if id == STALLED and first.mark.place == 0:
        says = f"The loss of {who} {first.mark.words}: it never fell"
    sure = all(each.mark.confidence is not Confidence.SUSPECT for each in whom)
    return [
        LogCause(
            id,
            says,
            tuple(each.curve.who for each in whom),
            Role.CONFIRMS if id in (SPIKING, SLOWER) else Role.ROOT,
            how=tuple(how),
            confidence=Confidence.STRONG if sure else Confidence.SUSPECT,
            count=len(whom),
        )
    ]


def _comparable(one: Curve, other: Curve) -> bool:
    return one.counted == other.counted


def _names(curves: Sequence[Curve]) -> str:
    ranks = [curve.who.rank for curve in curves if curve.who.rank is not None]
    if len(ranks) == len(curves):
        return ranks_text(ranks, most=MOST_NAMED)
    files = list(dict.fromkeys(curve.file for curve in curves))
    named = ", ".join(files[:MOST_NAMED])
    return named + (f" and {len(files) - MOST_NAMED} more" if len(files) > MOST_NAMED else "")


def _groups(curves: Sequence[Curve]) -> list[list[Curve]]:
    """Groups of curves that can be compared."""
    groups: dict[tuple[object, bool], list[Curve]] = {}
    for curve in curves:
        groups.setdefault((curve.form, curve.counted), []).append(curve)
    return [family for group in groups.values() for family in families(group)]


def _disagree(curves: Sequence[Curve]) -> list[LogCause]:
    found = []
    for group in _groups(curves):
        parted = parting(group)
        if parted is None:
            continue
        odd = [group[place] for place in parted.odd]
        rest = [curve for curve in group if curve not in odd]
        step = f"loss no. {parted.step:,}" if group[0].counted else f"step {parted.step:,}"
        values = ", ".join(
            f"{_names([curve])}: {number(value)}"
            for curve, value in list(zip(group, parted.values, strict=True))[:MOST_NAMED]
            if isfinite(value)
        )
        who = f"{_names(odd)} differ" + (f" from {_names(rest)}" if rest else "")
        says = f"The losses of {who} since {step}, and were the same before"
        how = [
            f"all these ranks had the same loss in {parted.before} steps that the logs share",
            f"at {step}: {values}",
        ]
        if not parted.told:
            how.append("the losses do not show which of them is right")
        found.append(
            LogCause(DISAGREE, says, tuple(curve.who for curve in odd), how=tuple(how), count=len(odd))
        )
    return found


def _settled(charges: Sequence[LogCause]) -> list[LogCause]:
    """The charges that no other explains: a loss rises before it is NaN, and spikes while it rises."""
    ids = {charge.symptom for charge in charges}
    hidden = {DIVERGING, SPIKING, STALLED} if NAN in ids else {SPIKING} if DIVERGING in ids else set()
    return [charge for charge in charges if charge.symptom not in hidden]


def _filled(charge: LogCause, known: Mapping[str, Symptom]) -> LogCause:
    symptom = known.get(charge.symptom or "")
    if symptom is None:
        return charge
    remedy = Remedy(symptom.id, symptom.remedy) if symptom.remedy else None
    return replace(charge, causes=symptom.causes, checks=symptom.checks, remedy=remedy)
