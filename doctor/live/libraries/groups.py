"""Works out who keeps the others waiting, from who waits in each group and who has not arrived."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from doctor.live.libraries.opinions import OpinionKind, Subject
from doctor.waits import cycles, roots

Key = tuple[object, ...]
_JOB: Key = ()
"""Stands for the whole job, which waits for every rank that is behind."""


@dataclass(frozen=True, slots=True)
class GroupStanding:
    """A group that stands still by its library's counts."""

    name: str
    behind: tuple[Subject, ...]
    """Members that have not entered the operation that the others are in."""
    waiting: frozenset[Key]
    """Members that are in that operation."""
    words: str
    """ "group 0: rank 1 has launched 3, 7 ranks 4" """
    crossed: bool = False
    """Some of `behind` are ahead in another type of operation: the members run different operations."""
    whole: bool = True
    """Whether the position of every member is known."""


def culprits(standing: Sequence[GroupStanding]) -> tuple[OpinionKind, tuple[Subject, ...], tuple[str, ...]]:
    """The kind of opinion, its subjects and its evidence.

    A rank that is behind in one group because it waits in another is not blamed. If no member is behind in
    any group, the kind is LAUNCHED, or SILENT if not every group is known completely.
    """
    missed = [each for each in standing if each.behind]
    whole = all(each.whole for each in standing)
    if not missed:
        return OpinionKind.LAUNCHED if whole and standing else OpinionKind.SILENT, (), ()
    words = tuple(each.words for each in missed)
    crossed = [each for each in missed if each.crossed]
    if crossed:
        return OpinionKind.MISMATCH, unique(subject for each in crossed for subject in each.behind), words
    behind = {subject.key: subject for each in missed for subject in each.behind}
    waits: dict[Key, list[Key]] = {_JOB: [*behind]}
    for each in standing:
        for key in each.waiting:
            waits.setdefault(key, []).extend(subject.key for subject in each.behind)
    if last := roots(waits):
        return OpinionKind.BLAMES, tuple(behind[key] for key in last), words
    if not whole:
        return OpinionKind.SILENT, (), words
    circle = frozenset[Key]().union(*cycles(waits)) or behind.keys()
    return OpinionKind.MISMATCH, tuple(subject for key, subject in behind.items() if key in circle), words


def unique(subjects: Iterable[Subject]) -> tuple[Subject, ...]:
    return tuple({subject.key: subject for subject in subjects}.values())


def named(subjects: Sequence[Subject], most: int = 4) -> str:
    """ "rank 3 of node2 and rank 5 of node3", "ranks 0, 1, 2 and 29 more" """
    if not subjects:
        return "nobody"
    if len(subjects) <= most:
        texts = [str(each) for each in subjects]
        return " and ".join(filter(None, (", ".join(texts[:-1]), texts[-1])))
    first = ", ".join(str(each) for each in subjects[:most])
    return f"{first} and {len(subjects) - most} more"
