"""Who waits least is named only beyond chance, alone or as a group that is clearly apart."""

import random
from collections.abc import Mapping, Sequence

from hypothesis import given
from hypothesis import strategies as st

from doctor.slow.judge.lateness import LEAST, latest

BLOCKS = 8


def shares(waits: Sequence[float], noise: float = 0.02, seed: int = 1) -> Mapping[int, list[float]]:
    """The shares of ranks that wait this much in the mean."""
    drawn = random.Random(seed)
    return {
        rank: [min(1.0, max(0.0, drawn.gauss(mean, noise))) for _ in range(BLOCKS)]
        for rank, mean in enumerate(waits)
    }


def test_the_one_that_waits_least_is_named() -> None:
    found = latest(shares([0.5, 0.5, 0.1, 0.5]))
    assert found.sure
    assert found.who == {2}
    assert round(found.gap, 1) == 0.4


def test_of_two_ranks_one_is_named() -> None:
    found = latest(shares([0.5, 0.2]))
    assert found.sure
    assert found.who == {1}


def test_equal_ranks_are_not_named() -> None:
    for seed in range(200):
        found = latest(shares([0.4] * 4, 0.05, seed))
        assert not found.sure, seed
        assert found.smallest >= LEAST


def test_equal_ranks_with_uneven_work_are_not_named() -> None:
    """In three of these the one that waits least does so evenly by luck: its own noise alone is too small."""
    assert not [seed for seed in range(400) if latest(shares([0.4] * 4, 0.1, seed)).sure]


def test_an_uneven_rank_does_not_hide_that_another_is_late() -> None:
    waits = {**shares([0.5, 0.5, 0.2, 0.5]), 3: [0.3, 0.8] * 4}
    found = latest(waits)
    assert (found.sure, {*found.who}) == (True, {2})


def test_a_small_effect_is_not_named_and_said_to_be_too_small() -> None:
    found = latest(shares([0.40, 0.40, 0.35, 0.40], 0.001))
    assert not found.sure
    assert found.smallest == LEAST


def test_a_few_are_named_together() -> None:
    found = latest(shares([0.5] * 6 + [0.1, 0.1]))
    assert found.sure
    assert found.who == {6, 7}


def test_half_of_the_ranks_can_be_late_and_not_more() -> None:
    found = latest(shares([0.5, 0.5, 0.1, 0.1]))
    assert found.sure
    assert found.who == {2, 3}
    assert not latest(shares([0.5, 0.1, 0.1, 0.1])).sure


def test_a_host_whose_ranks_are_all_late_is_named() -> None:
    found = latest(shares([0.5] * 4 + [0.2] * 4, 0.05), [range(4), range(4, 8)])
    assert found.sure
    assert found.who == {4, 5, 6, 7}


def test_what_is_noisy_may_become_clear() -> None:
    found = latest({0: [0.1, 0.9] * 4, 1: [0.4] * 8, 2: [0.6] * 8})
    assert not found.sure


@given(st.lists(st.lists(st.floats(0, 1), min_size=8, max_size=8), min_size=2, max_size=6))
def test_whoever_is_named_waits_least(rows: list[list[float]]) -> None:
    found = latest(dict(enumerate(rows)))
    if found.sure:
        late = [sum(rows[rank]) for rank in found.who]
        assert max(late) < min(sum(row) for rank, row in enumerate(rows) if rank not in found.who)
