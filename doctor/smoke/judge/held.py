"""Results that all members of a group must hold alike, and what arrived over an edge of the pipeline.

Which of two members is wrong is told by sums: what all gave, added up, is what each of them must hold.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from doctor.model import Confidence, Evidence
from doctor.smoke.events import TrainStep
from doctor.smoke.judge.cells import Cell, alike, vote
from doctor.smoke.judge.charge import SmokeCharge, worded
from doctor.smoke.judge.gradient_sum import LIMIT

Said = Mapping[int, TrainStep]
Groups = Sequence[tuple[str, tuple[int, ...]]]


def unequal(cell: Cell, end: int) -> list[SmokeCharge]:
    """The charges of the first step before `end` that has any."""
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
        yield SmokeCharge(
            *worded("held", words=words, step=step, expected="the same bits on all members"),
            ranks=cell.numbers(odd or found.odd),
            victims=cell.numbers(set(members) - set(odd or found.odd)),
            step=step,
            undecided=not odd and not found.decided,
            evidence=(Evidence(f"results of {group} in step {step}", "\n".join(lines[:32])),),
        )


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
            yield SmokeCharge(
                *worded("held", words=words, step=step, expected="the bits that were sent"),
                ranks=cell.numbers([place]),
                victims=cell.numbers(wrong),
                step=step,
                confidence=Confidence.STRONG,
            )
