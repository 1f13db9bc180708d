"""Which devices belong to the job, which of them differ, and how they are named."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from doctor.api import UNDECIDED, Confidence
from doctor.facts.ascend.job_npus import chosen, used
from doctor.rules.devices import HostDevice, OddDevices, named, odd_ones, of_cluster, of_host
from tests.support.cases import cases
from tests.support.npu_cluster import plan, tabled


@cases
def test_the_devices_that_a_job_may_see(text: str | None, ids: tuple[int, ...] | None) -> None:
    assert chosen(plan(env={} if text is None else {"ASCEND_RT_VISIBLE_DEVICES": text})) == ids


@cases
def test_ids_count_the_devices_that_are_there(
    present: tuple[int, ...], text: str, mine: tuple[int, ...]
) -> None:
    assert used(present, plan(env={"ASCEND_RT_VISIBLE_DEVICES": text})) == mine


@pytest.mark.parametrize(
    ("present", "listed", "mine"),
    [
        (range(8), (4, 5), (4, 5)),
        ((0, 1, 2, 5, 6), (1, 2, 3, 4), (1, 2)),
        ((0, 1), (4, 5), (0, 1)),
        ((0, 1, 2), (4, 5), (0, 1, 2)),
        ((0, 1, 2, 3), (2, 3, 4, 5), (0, 1, 2, 3)),
        (range(4), (), (0, 1, 2, 3)),
    ],
)
def test_the_rank_table_names_the_devices_of_a_host(
    present: range | tuple[int, ...], listed: tuple[int, ...], mine: tuple[int, ...]
) -> None:
    job = tabled(plan(), {"node2": listed})
    assert used(present, job, "node2") == mine
    assert used(present, job, "node1") == tuple(present), "it does not name this one"
    assert used(present, job) == tuple(present)
    seen = tabled(plan(env={"ASCEND_RT_VISIBLE_DEVICES": "0"}), {"node2": listed})
    assert used(present, seen, "node2") == (present[0],), "the variable decides"


def test_values_are_kept_for_the_devices_of_the_rank_table() -> None:
    said = {n: n for n in range(8)}
    job = tabled(plan(), {"node1": (0, 1), "node2": (6, 7)})
    assert of_host(said, job, "node1") == ({0: 0, 1: 1}, "")
    assert set(of_cluster({"node1": said, "node2": said}, job)[0]) == {
        ("node1", 0),
        ("node1", 1),
        ("node2", 6),
        ("node2", 7),
    }


@given(st.text(max_size=40) | st.from_regex(r"[0-9,]{0,60}", fullmatch=True), st.sets(st.integers(0, 15)))
def test_any_text_leaves_only_existing_devices(text: str, present: set[int]) -> None:
    mine = used(present, plan(env={"ASCEND_RT_VISIBLE_DEVICES": text}))
    assert list(mine) == sorted(set(mine) & present)


@cases
def test_devices_are_named_in_ranges(seats: list[HostDevice], text: str) -> None:
    assert named(seats) == text


def values(text: str) -> dict[HostDevice, str]:
    """ "aab/b": two hosts, with three devices and one."""
    return {
        (f"node{host}", n): value
        for host, own in enumerate(text.split("/"), 1)
        for n, value in enumerate(own)
    }


@cases
def test_devices_that_differ_from_the_others(text: str, found: list[str]) -> None:
    odds = list(odd_ones(values(text)))
    assert [named(odd.seats) if odd.decided else "undecided" for odd in odds] == found
    for odd in odds:
        assert odd.decided or set(odd.seats) == set(values(text))


@given(st.dictionaries(st.tuples(st.sampled_from("abcd"), st.integers(0, 7)), st.sampled_from("xyz")))
def test_no_device_is_blamed_twice_and_never_the_majority(said: dict[HostDevice, str]) -> None:
    odds = list(odd_ones(said))
    blamed = [seat for odd in odds for seat in odd.seats]
    assert len(blamed) == len(set(blamed))
    assert bool(odds) is (len(set(said.values())) > 1)
    if all(odd.decided for odd in odds):
        right = [value for seat, value in said.items() if seat not in blamed]
        assert len(set(right)) <= 1
        assert 2 * len(right) > len(said) or not said


def test_a_problem_of_suspects_is_marked() -> None:
    seats = (("node1", 3), ("node2", 3), ("node2", 5))
    sure = OddDevices(seats[:1], True, "e", "a").problem("it is odd", confidence=Confidence.STRONG)
    assert (sure.summary, sure.subject, sure.confidence) == ("it is odd", "device 3", Confidence.STRONG)
    unsure = OddDevices(seats, False, "e", "a").problem("one is odd", confidence=Confidence.STRONG)
    assert (unsure.summary, unsure.confidence) == ("one is odd" + UNDECIDED, Confidence.SUSPECT)
    assert unsure.subject == "node1 device 3, node2 devices 3,5"
    assert unsure.hosts == ("node1", "node2")
    assert unsure.values == {"device": ("3", "5")}
