"""Who waits for whom, as a graph."""

from collections.abc import Sequence

from doctor.text.grouped import grouped
from doctor.waits import common_end, cycles, longest_way, roots, waited_for
from tests.support.cases import cases

Pairs = Sequence[str]
LINKED = ("ab", "ba", "ax", "xc", "cd", "dc")
"""Two cycles; x waits for one of them, and the other waits for x."""


def waits(pairs: Pairs) -> dict[str, list[str]]:
    return grouped((pair[0], pair[1]) for pair in pairs)


@cases
def test_who_is_waited_for(pairs: Pairs, ends: str, cycle: bool) -> None:
    found, circle = waited_for(waits(pairs))
    assert ("".join(sorted(found)), circle) == (ends, cycle)


def test_each_cycle_is_told_by_itself() -> None:
    told = {"".join(sorted(each)) for each in cycles(waits(LINKED))}
    assert told == {"ab", "cd"}
    assert {"".join(sorted(each)) for each in cycles(waits([*LINKED, "da"]))} == {"abcdx"}
    assert cycles(waits(["ab", "bc", "ac"])) == []


def test_cycles_of_many_parties_take_no_recursion() -> None:
    number = 20_000
    ring = {each: [(each + 1) % number] for each in range(number)}
    (found,) = cycles(ring)
    assert len(found) == number
    assert cycles({**ring, number - 1: [number]}) == []


def test_who_waits_for_nobody_that_is_known_is_no_root() -> None:
    assert roots({"a": ["b", "c"], "b": []}) == ["c"]


def test_the_longest_of_the_shortest_ways() -> None:
    assert longest_way(waits(["ab", "bc", "ac", "de", "ed", "ba"]), "c") == ("b", "c")
    assert longest_way(waits(["ab", "bc", "cd"]), "d") == tuple("abcd")
    assert longest_way(waits(["ab"]), "") == ()


def test_the_end_that_all_pairs_have() -> None:
    assert common_end(["ab", "ac"]) == "a"
    assert common_end(["ab"]) is None
    assert common_end(["ab", "cd"]) is None
    assert common_end(["ab", "ab"]) is None
