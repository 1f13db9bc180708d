"""The graph of who waits for whom, and where its chains end. Pure: a party can be any hashable value.

Every party that waits is a key of the graph, even if it is unknown for whom it waits.
"""

from collections import Counter
from collections.abc import Collection, Hashable, Iterable, Mapping
from itertools import chain
from typing import TypeVar

from doctor.text.grouped import grouped

N = TypeVar("N", bound=Hashable)


def roots(waits: Mapping[N, Collection[N]]) -> list[N]:
    """The parties that others wait for and that wait for nobody."""
    return [each for each in dict.fromkeys(chain(*waits.values())) if each not in waits]


def cycles(waits: Mapping[N, Collection[N]]) -> list[frozenset[N]]:
    """Groups of parties that wait for each other. A party that only leads to a cycle belongs to no group."""
    into = grouped((other, one) for one, others in waits.items() for other in others)
    left: list[N] = []
    """In this list, each party comes after all parties that it waits for, except within a cycle."""
    seen: set[N] = set()
    for start in waits:
        todo = [(start, False)]
        while todo:
            at, over = todo.pop()
            if over:
                left.append(at)
            elif at not in seen:
                seen.add(at)
                todo += [(at, True), *((other, False) for other in waits.get(at, ()))]
    found = []
    while left:
        start, together, back = left[-1], set[N](), [left.pop()]
        while back:
            at = back.pop()
            if at in seen:
                seen.remove(at)
                together.add(at)
                back += into.get(at, ())
        if len(together) > 1 or (together and start in waits.get(start, ())):
            found.append(frozenset(together))
    return found


def waited_for(waits: Mapping[N, Collection[N]]) -> tuple[list[N], bool]:
    """The roots and False; if there are no roots, the members of the cycles and True."""
    ends = roots(waits)
    members = frozenset[N]().union(*cycles(waits))
    return (ends, False) if ends else ([each for each in waits if each in members], True)


def longest_way(waits: Mapping[N, Collection[N]], ends: Iterable[N]) -> tuple[N, ...]:
    """The shortest path to an end from the party that is farthest from all ends."""
    into = grouped((other, one) for one, others in waits.items() for other in others)
    after: dict[N, N | None] = dict.fromkeys(ends)
    todo = list(after)
    for each in todo:
        for before in into.get(each, ()):
            if before not in after:
                after[before] = each
                todo.append(before)
    way, at = [], todo[-1] if todo else None
    while at is not None:
        way.append(at)
        at = after[at]
    return tuple(way)


def common_end(pairs: Collection[Collection[N]]) -> N | None:
    """The only end that all of several pairs share; None if there is not exactly one."""
    shared = [end for end, number in Counter(chain(*pairs)).items() if number == len(pairs) > 1]
    return shared[0] if len(shared) == 1 else None
