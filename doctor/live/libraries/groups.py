"""Works out who keeps the others waiting, from who waits in each group and who has not arrived."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from doctor.live.libraries.opinions import Opinion, OpinionKind, Source, Subject, Trust
from doctor.waits import cycles, roots

Key = tuple[object, ...]
_JOB: Key = ()
"""Stands for the whole job, which waits for every rank that is behind."""


@dataclass(frozen=True, slots=True)
class GroupStanding:
    """A group that stands still by its library's counts."""

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


def standing(
    name: str,
    number: int,
    operation: str,
    ahead: Sequence[Subject],
    behind: Sequence[tuple[Subject, int]],
    size: int,
) -> GroupStanding:
    """A group of so many ranks, of which some are in an operation, and others only at earlier numbers."""
    late = ", ".join(f"{each} at {at}" for each, at in behind[:4]) or "nobody is behind"
    return GroupStanding(
        behind=tuple(each for each, _ in behind),
        waiting=frozenset(each.key for each in ahead),
        words=f"group {name}: {len(ahead)} in number {number} ({operation}); {late}",
        whole=len(ahead) + len(behind) == size,
    )


def opinion_of(
    source: Source, title: str, groups: Sequence[GroupStanding], *, entered: str, launched: str, old: str = ""
) -> Opinion | None:
    """The opinion of a source that counts the collectives of each rank; None if the groups show nothing.
    `entered`: what those who are behind have not done; `launched`: how it is said that nobody is behind;
    `old`: how old its answers are, if that makes it a hint only.
    """
    kind, behind, words = culprits(groups)
    if kind is OpinionKind.SILENT:
        return None
    has = "has" if len(behind) == 1 else "have"
    text = {
        OpinionKind.BLAMES: f"{named(behind)} {has} not {entered} the collective in which the others are",
        OpinionKind.MISMATCH: f"{named(behind)} wait for each other in different groups",
        OpinionKind.LAUNCHED: launched,
    }[kind]
    return Opinion(
        source=source,
        trust=Trust.VOTE if old else Trust.STRONG,
        kind=kind,
        words=f"{title}: {text}{old}.",
        subjects=behind,
        evidence=words or tuple(each.words for each in groups),
    )


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
