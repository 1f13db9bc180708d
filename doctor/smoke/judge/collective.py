"""Collectives whose results differ from their closed form, and sums that are not the sums of their parts."""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from doctor.model import Confidence, Evidence
from doctor.smoke.events import CollectiveDeviation, TrainStep
from doctor.smoke.judge.cells import Cell, alike, cells, vote
from doctor.smoke.judge.charge import SmokeCharge, worded
from doctor.smoke.judge.gradient_sum import LIMIT, Loss, first_loss, projections
from doctor.smoke.onhost.collectiveplan import LARGEST, PERIOD, addends
from doctor.smoke.result import SmokeResult

_NAME = re.compile(r"(\w{1,30}) of (\d{1,12}) (\w{1,20})(?: from (\d{1,6}))?")
_LAST = 1 << 30
"""The position of all exchanges together: they come after the other calls."""
_SUMMING = ("all_reduce", "reduce", "broadcast", "reduce_scatter", "all_gather")


class WrongResult(NamedTuple):
    """One wrong result, parsed; `source` is the place that the wrong part came from."""

    place: int
    said: CollectiveDeviation
    op: str
    elements: int
    dtype: str
    source: int | None

    @property
    def ends(self) -> set[int]:
        return {self.place} if self.source is None else {self.place, self.source}


class Guilt(NamedTuple):
    places: tuple[int, ...]
    words: str
    decided: bool = True
    confidence: Confidence = Confidence.CERTAIN


def judge_collective(result: SmokeResult) -> Iterator[SmokeCharge]:
    for cell in cells(result):
        charges = list(_phase(cell))
        yield from charges
        if not charges:
            sums = first_loss(cell)
            yield from unequal(cell, sums[0].step if sums else cell.shape.steps) or [
                _gradient(cell, loss) for loss in sums if not loss.unreduced
            ]


def _phase(cell: Cell) -> Iterator[SmokeCharge]:
    """Charges in the order of the calls: after a member failed, results of its groups may be its fault."""
    guilty: set[int] = set()
    calls = _by_call(cell)
    for (_, _, members), wrongs in sorted(calls.items()):
        members = members or tuple(sorted({each for wrong in wrongs for each in wrong.ends}))
        if guilty.isdisjoint(members):
            guilt = _guilt(list(members), wrongs, [each for of in calls.values() for each in of])
            guilty.update(guilt.places)
            yield _charge(cell, guilt, wrongs, members)


def _by_call(cell: Cell) -> dict[tuple[int, str, tuple[int, ...]], list[WrongResult]]:
    """The wrong results of each call, by its position, operation and the places that entered it together."""
    calls: dict[tuple[int, str, tuple[int, ...]], list[WrongResult]] = defaultdict(list)
    for place in cell.places:
        collectives = cell.seen[place].collectives
        for said in collectives.wrong if collectives else ():
            match = _NAME.fullmatch(said.name)
            op, elements, dtype, source = match.groups() if match else (said.name, "0", "", None)
            sender = None if source is None else int(source)
            wrong = WrongResult(place, said, op, int(elements), dtype, sender)
            if op == "exchange":  # judged together: one rank may spoil several edges
                calls[_LAST, op, ()].append(wrong)
                continue
            calls[said.position, op, tuple(cell.shape.members(said.group, place))].append(wrong)
    return calls


def _guilt(members: list[int], wrongs: list[WrongResult], every: list[WrongResult]) -> Guilt:
    if wrongs[0].op == "exchange":
        common = tuple(set.intersection(*(wrong.ends for wrong in wrongs))) if len(members) > 2 else ()
        words = "what ranks exchanged with their neighbours arrived wrong"
        return Guilt(common or tuple(members), words, len(common) == 1, Confidence.STRONG)
    holders = sorted({wrong.place for wrong in wrongs})
    sources = {wrong.source for wrong in wrongs}
    others = [place for place in members if place not in holders]
    source = next(iter(sources)) if len(sources) == 1 else None
    if source in members and len(members) > 2 and set(members) - set(holders) <= {source}:
        return Guilt((source,), "what it sent arrived wrong on all the others")
    if len(holders) == len(members) > 1:
        return _contribution(members, wrongs)
    same = len({(wrong.said.index, wrong.said.got) for wrong in wrongs}) == 1
    if wrongs[0].op == "broadcast" and len(others) == 1 and len(holders) > 1 and same:
        return Guilt((others[0],), "what it broadcast arrived wrong on all the others")
    if None not in sources and (len(members) == 2 or wrongs[0].op == "all_to_all"):
        ends = set.intersection(*(wrong.ends for wrong in wrongs)) or {*members}
        beside = {end for end in ends if any(end in one.ends and not ends <= one.ends for one in every)}
        known = sorted(beside if len(beside) == 1 else ends)
        if known != holders:
            return Guilt(tuple(known), "what one rank sent arrived wrong on another", len(known) == 1)
    return Guilt(tuple(holders), "its result of a collective is wrong")


def _contribution(members: list[int], wrongs: list[WrongResult]) -> Guilt:
    """The guilt if all members hold a wrong result: one part, left out or added twice, may explain all."""
    suspects = set(members).intersection(*(_explaining(members, wrong) for wrong in wrongs))
    if len(suspects) == 1:
        words = "its part is missing in the result of a collective, or was added twice"
        return Guilt(tuple(suspects), words, confidence=Confidence.STRONG)
    return Guilt(tuple(members), "all members of a group have a wrong result of a collective", decided=False)


def _explaining(members: list[int], wrong: WrongResult) -> set[int]:
    """The places whose part equals the difference between the result and what was expected."""
    if wrong.op not in _SUMMING or wrong.source is not None:
        return set()
    try:
        difference = abs(float(wrong.said.got) - float(wrong.said.expected))
    except ValueError:
        return set()
    index = wrong.said.index
    if wrong.op == "reduce_scatter":
        index += members.index(wrong.place) * (wrong.elements // len(members))
    parts = addends(members, wrong.dtype if wrong.dtype in LARGEST else "float32")
    return {place for place in members if parts[place][index % PERIOD] == difference}


def _charge(cell: Cell, guilt: Guilt, wrongs: list[WrongResult], members: tuple[int, ...]) -> SmokeCharge:
    counts = []
    for place in cell.places:
        collectives = cell.seen[place].collectives
        if collectives and collectives.wrong:
            counts.append(f"{cell.name(place)}: {len(collectives.wrong)} wrong of {collectives.done}")
    size = 2 if wrongs[0].op == "exchange" else len(members)
    each = [
        f"{cell.name(wrong.place)}: {wrong.said.name}, element {wrong.said.index}: "
        f"{wrong.said.got} instead of {wrong.said.expected}"
        for wrong in wrongs[:16]
    ]
    words = worded("collective", words=guilt.words, said=wrongs[0].said, members=size)
    charge = cell.charge(words, guilt.places, members, "first wrong result", each, decided=guilt.decided)
    seen = (*charge.evidence, Evidence("wrong results", "\n".join(counts[:32])))
    return replace(charge, confidence=guilt.confidence, evidence=seen)


def _gradient(cell: Cell, loss: Loss) -> SmokeCharge:
    """The all-reduce of a training step."""
    places, decided, confidence = loss.places, True, Confidence.CERTAIN
    words = "the all-reduced gradient that it holds is not the sum of the replicas' gradients"
    if loss.lost is not None:
        places, confidence = (loss.lost,), Confidence.STRONG
        words = "its gradient is missing in the sum of the replicas' gradients"
    elif loss.everybody:
        decided = False
        words = "on every replica the all-reduced gradient is not the sum of the replicas' gradients"
    said = worded("sum", words=words, loss=loss, replicas=len(loss.column))
    charge = cell.charge(said, places, loss.column, *projections(cell, loss.step), step=loss.step)
    return replace(charge, confidence=confidence, undecided=not decided)


Said = Mapping[int, TrainStep]
Groups = Sequence[tuple[str, tuple[int, ...]]]


def unequal(cell: Cell, end: int) -> list[SmokeCharge]:
    """The charges of the first step before `end` in which members of a group hold different results, or other
    bits arrived over an edge of the pipeline than were sent. Which of two members is wrong is told by sums:
    what all gave, added up, is what each of them must hold.
    """
    shape = cell.shape
    every = ((group, tuple(shape.members(group, place))) for group in shape.groups for place in cell.places)
    groups = [(group, members) for group, members in dict.fromkeys(every) if len(members) > 1]
    steps = cell.common_steps(cell.places) if cell.within is None else []
    for step, said in enumerate(steps[:end]):
        if not all(each.finite for each in said.values()):
            break
        if found := [*_in_groups(cell, step, steps, groups), *_over_edges(cell, step, said, groups)]:
            return found
    return []


def _in_groups(cell: Cell, step: int, steps: Sequence[Said], groups: Groups) -> Iterator[SmokeCharge]:
    for group, members in groups:
        held = _held(steps[step], group, members)
        found = vote({place: each[0] for place, each in held.items()}) if alike(cell, members) else None
        if found is None:
            continue
        odd = next(filter(None, (_astray(said, group, members) for said in steps[step:])), ())
        words = f"what it holds after its {group} collectives is not what the others hold"
        if not odd and not found.decided:
            words = f"members of a group hold different results of {group} collectives"
        lines = [f"{cell.name(place)}: {each[0]:012x}, sum {each[2]:.9g}" for place, each in held.items()]
        text = worded("held", words=words, step=step, expected="the same bits on all members")
        source = f"results of {group} in step {step}"
        decided = bool(odd) or found.decided
        yield cell.charge(text, odd or found.odd, members, source, lines[:32], step=step, decided=decided)


def _held(said: Said, group: str, members: Iterable[int]) -> dict[int, tuple[int, float, float, float]]:
    """What the members hold; nothing if one of them did not tell."""
    held = {place: said[place].held.get(group) for place in members}
    known = {place: each for place, each in held.items() if each}
    return known if len(known) == len(held) else {}


def _astray(said: Said, group: str, members: Sequence[int]) -> tuple[int, ...]:
    """The members whose sums are not what all gave, if the step has sums and some are right."""
    held = _held(said, group, members)
    given, most = (sum(each[index] for each in held.values()) for index in (1, 3))
    off = tuple(place for place, each in held.items() if most and not abs(each[2] - given) <= LIMIT * most)
    return off if len(off) < len(members) else ()


def _over_edges(cell: Cell, step: int, said: Said, groups: Groups) -> Iterator[SmokeCharge]:
    edges = ((place, members) for group, members in groups if group == "pp" for place in members)
    for place, members in edges:
        mine, wrong = said[place].held, []
        for peer in members:
            out, into = said[peer].held.get(f"to {place}"), mine.get(f"from {peer}")
            wrong += [peer] if out and into and out[0] != into[0] else []
        if wrong:
            words = f"what it received from {' and '.join(map(cell.name, wrong))} is not what was sent"
            text = worded("held", words=words, step=step, expected="the bits that were sent")
            yield cell.charge(text, [place], wrong, step=step, confidence=Confidence.STRONG)
