"""What is said of ranks on other hosts when doctor ends a job."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from doctor.around.elsewhere import Became, RankElsewhere, ended_with_others, read_answer, sentences
from doctor.around.onhost.agent import DENIED, FOREIGN, ITSELF, STUCK, TERM

RANK = RankElsewhere("node2", 812, 1, 0.0, False)


@pytest.mark.parametrize(
    ("word", "said"),
    [
        (TERM, ["rank 1 on node2 was ended too, by TERM."]),
        (ITSELF, []),
        (DENIED, ["rank 1 on node2 may still run: it belongs to another user."]),
        (FOREIGN, ["rank 1 on node2 may still run: nothing shows that the command started it."]),
        (STUCK, ["rank 1 on node2 may still run: KILL does not end it."]),
        ("", ["rank 1 on node2 may still run: its host did not answer."]),
    ],
)
def test_what_became_of_a_rank(word: str, said: list[str]) -> None:
    assert [*sentences([RANK], {"node2": {812: word}} if word else {})] == said


@pytest.mark.parametrize(
    ("bound", "word", "again"),
    [(True, TERM, True), (True, ITSELF, False), (True, FOREIGN, False), (False, TERM, False)],
)
def test_a_rank_that_came_by_a_jump_host_is_known_by_the_others(bound: bool, word: str, again: bool) -> None:
    stranger = RankElsewhere("node3", 900, 7, 0.0, False)
    ranks = [replace(RANK, bound=bound), RankElsewhere("node1", 811, 0, 0.0, False, bound), stranger]
    asked = []

    def ask(some: Sequence[RankElsewhere]) -> Became:
        asked.append(some)
        return {
            each.host: {each.pid: TERM if each.own else word if each.rank == 0 else FOREIGN} for each in some
        }

    became = ended_with_others(ranks, ask)
    assert became["node2"] == {812: TERM if again else FOREIGN}
    assert became["node3"] == {900: FOREIGN}
    assert asked[1:] == ([[replace(ranks[0], own=True)]] if again else [])


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"t {",
        b"t []",
        b't {"812": 7}',
        b't {"x": "TERM"}',
        b"t {" + b'"a":{' * 99_999,
        b't {"' + b"9" * 5000 + b'": "TERM"}',
        b'other {"812": "TERM"}',
        b"t {}\xff",
    ],
)
def test_an_answer_that_cannot_be_read_says_nothing(text: bytes) -> None:
    assert read_answer(text, "t") == {}


def test_an_answer() -> None:
    assert read_answer(b'hello\nt {"812": "TERM"}\nt done\n', "t") == {812: TERM}
