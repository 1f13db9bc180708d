"""NCCL RAS: only counts that stand still show which rank is behind."""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from doctor.live.evidence import LibraryText
from doctor.live.libraries.consult import opinions
from doctor.live.libraries.opinions import Opinion, OpinionKind, Source, Trust, decoded
from doctor.live.libraries.ras import RasAnswer
from tests.support.cases import cases_with
from tests.support.library_texts import Ranks, job_of, sample, seen, text

Counts = Mapping[int, int | Mapping[str, int]]


def communicator(name: str, counts: Counts, missing: Sequence[tuple[int, bool]] = ()) -> dict[str, Any]:
    """The real answer with other numbers. Ranks are keyed by their number in the job; half of them are on
    node2.
    """
    real = json.loads(sample("ras_missing_2.29.json"))["communicators"][0]
    rank, lost = real["ranks"][0], real["missing_ranks"][0]
    ranks = []
    for own, (number, count) in enumerate(counts.items()):
        told = {"AllReduce": count} if isinstance(count, int) else dict(count)
        kept = {**rank["collective_counts"], **told}
        place = {"rank": own, "host": address(number), "pid": 100 + number}
        ranks.append({**rank, **place, "collective_counts": kept})
    gone = [
        {
            **lost,
            "rank": len(counts) + own,
            "host": address(number),
            "pid": 100 + number,
            "status": {"unresponsive": True, "considered_dead": dead},
        }
        for own, (number, dead) in enumerate(missing)
    ]
    size = len(ranks) + len(gone)
    return {**real, "hash": name, "size": size, "ranks": ranks, "missing_ranks": gone}


def address(rank: int) -> str:
    return f"10.0.0.{rank // 2 + 1}"


def answer(*communicators: dict[str, Any]) -> str:
    real = json.loads(sample("ras_missing_2.29.json"))
    return json.dumps({**real, "communicators": communicators})


def asked(first: str, second: str, job: Ranks | None = None) -> Opinion:
    job = job or job_of(4, 2)
    said = (text(Source.RAS, first, which="a"), text(Source.RAS, second, which="b"))
    found = opinions(seen(job, *said), job)
    assert len(found) == 1
    return found[0]


def test_the_one_that_has_launched_fewest_is_behind() -> None:
    stands = answer(communicator("0x1", {0: 641, 1: 641, 2: 640, 3: 641}))
    said = asked(stands, stands)
    assert (said.kind, said.trust) == (OpinionKind.BLAMES, Trust.STRONG)
    assert [(each.rank, each.host) for each in said.subjects] == [(2, "node2")]
    assert "AllReduce 640 by rank 2 of node2, up to 641 by the others" in said.evidence[0]


def test_many_behind_a_few_are_behind_all_the_same() -> None:
    """RAS itself would print the rank that is ahead."""
    stands = answer(communicator("0x1", {0: 641, 1: 640, 2: 640, 3: 640}))
    assert asked(stands, stands).ranks == {1, 2, 3}


def test_counts_that_move_blame_nobody() -> None:
    before = answer(communicator("0x1", {0: 641, 1: 641, 2: 640, 3: 641}))
    after = answer(communicator("0x1", {0: 642, 1: 641, 2: 641, 3: 641}))
    said = asked(before, after)
    assert (said.kind, said.subjects) == (OpinionKind.MOVES, ())


def test_equal_counts_that_stand_lie_below() -> None:
    stands = answer(communicator("0x1", dict.fromkeys(range(4), 640)))
    said = asked(stands, stands)
    assert (said.kind, said.subjects) == (OpinionKind.LAUNCHED, ())


def test_who_is_behind_because_it_waits_elsewhere_is_not_blamed() -> None:
    dp = communicator("0x1", {0: 10, 2: 9})
    tp = communicator("0x2", {2: 50, 3: 49})
    said = asked(answer(dp, tp), answer(dp, tp))
    assert (said.kind, said.ranks) == (OpinionKind.BLAMES, {3})
    assert len(said.evidence) == 2


def test_who_may_wait_for_a_message_is_merely_a_vote() -> None:
    dp, messages = communicator("0x1", {2: 9, 3: 10}), communicator("0x2", {0: 0, 2: 0})
    said = asked(answer(dp, messages), answer(dp, messages))
    assert (said.ranks, said.trust) == ({2}, Trust.VOTE)


@cases_with(communicator)
def test_each_behind_the_other_is_a_mismatch(groups: Sequence[dict[str, Any]]) -> None:
    said = asked(answer(*groups), answer(*groups))
    assert (said.kind, said.ranks) == (OpinionKind.MISMATCH, {0, 1})


@pytest.mark.parametrize(("dead", "state"), [(False, "is not answering"), (True, "is dead")])
def test_missing_ranks_come_before_those_that_are_behind(dead: bool, state: str) -> None:
    stands = answer(communicator("0x1", {0: 5, 1: 4}, missing=[(3, dead)]))
    said = asked(stands, stands)
    assert (said.ranks, state in said.words) == ({3}, True)


def test_a_missing_rank_as_nccl_2_28_writes_it() -> None:
    """Without a comma between its device and its state."""
    stands = answer(communicator("0x1", {0: 5, 1: 4}, missing=[(3, False)]))
    written = re.sub(r'("nvml_dev": \d+), ("status")', r"\1\n          \2", stands)
    assert (written == stands, asked(written, written).ranks) == (False, {3})


def test_missing_once_is_not_missing() -> None:
    before = answer(communicator("0x1", {0: 5, 1: 5}, missing=[(3, False)]))
    after = answer(communicator("0x1", {0: 5, 1: 5, 3: 5}))
    assert asked(before, after).kind is OpinionKind.LAUNCHED
    assert asked(after, before).kind is OpinionKind.SILENT


def test_the_answer_of_the_documentation() -> None:
    """None of its processes belongs to this job."""
    real = sample("ras_missing_2.29.json")
    assert not isinstance(decoded(real, RasAnswer), str)
    assert asked(real, real).kind is OpinionKind.SILENT


@pytest.mark.parametrize(
    ("first", "why"),
    [
        ("", "unknown form"),
        ("Job summary\n===========\n\n#0-0 (27a079b828ff1a75) MISMATCH\n", "unknown form"),
        (sample("ras_missing_2.29.json")[:500], "cut off"),
        ('{"communicators": ' + "[" * 100_000, "cut off"),
        ('{"communicators": [{"hash": 7, "size": 2, "ranks": []}]}', "unknown form"),
        (answer(communicator("0x1", {0: -5, 1: 1})), "unknown form"),
    ],
)
def test_what_cannot_be_used_is_said(first: str, why: str) -> None:
    said = asked(first, first)
    assert (said.kind, said.subjects) == (OpinionKind.SILENT, ())
    assert why in said.words


def test_a_host_that_is_no_name() -> None:
    stands = answer(communicator("0x1", {0: 5, 3: 4})).replace("10.0.0.2", "\\u001b[31m")
    said = asked(stands, stands)
    assert [(each.rank, each.pid) for each in said.subjects] == [(None, 103)]
    assert said.subjects[0].host.isprintable()
    assert said.words.isprintable()


def test_numbers_of_a_container() -> None:
    """In the container, the ranks are processes 7 and 8."""
    job = job_of(2)
    inside = answer(communicator("0x1", {0: 5, 1: 4}))
    inside = inside.replace('"pid": 100', '"pid": 7').replace('"pid": 101', '"pid": 8')
    numbers = LibraryText(source="process-numbers", name="/proc", text="100 7\n101 8\nnonsense")
    said = (text(Source.RAS, inside, which="a"), text(Source.RAS, inside, which="b"), numbers)
    assert opinions(seen(job, *said), job)[0].ranks == {1}
    assert opinions(seen(job, *said[:2]), job)[0].kind is OpinionKind.SILENT
