"""Lines are classified by their sentence, and what one line states is not attributed to another line."""

from pathlib import Path

import pytest

from tests.unit.logs.known import one


def test_a_lone_zero_is_no_other_number(tmp_path: Path) -> None:
    lines = [f"[Epoch {n}] Failed steps: 0\n" for n in range(50)]
    assert one(tmp_path, "".join(lines)).files[0].odd == ()
    lines += [
        *("Failed steps: 0\n" for _ in range(400)),
        "Failed steps: 3\n",
        *("step done\n" for _ in range(400)),
    ]
    (odd,) = one(tmp_path, "".join(lines)).files[0].odd
    assert (odd.number, odd.text) == (451, "Failed steps: 3")


def test_a_complaint_after_very_many_lines_that_only_look_like_one(tmp_path: Path) -> None:
    healthy = "".join(
        f"[Epoch {n}] lr 0.{n % 97} of the schedule, the warm-up is over\n" for n in range(40_000)
    )
    text = f"{healthy}Error: the frobnicator is not there\n{healthy}"
    (odd,) = one(tmp_path, text).files[0].odd
    assert odd.number == 40_001


def test_words_that_only_a_sentence_holds(tmp_path: Path) -> None:
    """Without blanks and full stops, "data.loader" contains the end of "fatal"."""
    text = (
        "data.loader: read 17 shards\n" * 100
        + "fatal: no shard is there\n"
        + "data.loader: read 18 shards\n" * 9
    )
    assert [line.number for line in one(tmp_path, text).files[0].odd] == [101]


def test_a_rank_that_stopped_long_before_the_others_has_a_last_step(tmp_path: Path) -> None:
    def steps(first: int, last: int, ranks: range) -> str:
        return "".join(
            f"[rank{rank}]: step {step} of 90000 tokens/s {step * 37} {'x' * 60}\n"
            for step in range(first, last)
            for rank in ranks
        )

    text = steps(1, 3000, range(4)) + steps(3000, 9000, range(3))
    progress = {line.who.rank: line for line in one(tmp_path, text).files[0].progress}
    assert progress.keys() == {0, 1, 2, 3}
    assert {rank: line.text.split()[2] for rank, line in progress.items() if rank != 3} == dict.fromkeys(
        range(3), "8999"
    )
    assert progress[3].text.startswith("[rank3]: step 2999 ")


@pytest.mark.parametrize(
    "front", ["[rank{}]: ", "{}: ", "node{}: ", "2026-11-20T21:00:00.123456789Z [rank{}]: "]
)
def test_ranks_that_stopped_one_after_the_other_each_have_their_last_step(tmp_path: Path, front: str) -> None:
    lines = [
        f"{front.format(rank)}step {step} done\n"
        for step in range(1, 4000)
        for rank in range(4)
        if step < 1000 * (rank + 1)
    ]
    progress = [line.text.split("step ")[1] for line in one(tmp_path, "".join(lines)).files[0].progress]
    assert sorted(progress) == ["1999 done", "2999 done", "3999 done", "999 done"]


def test_steps_in_front_of_which_stands_no_rank_hide_none_that_has_one(tmp_path: Path) -> None:
    lines = [f"[rank{step % 2}]: step {step} done\n" for step in range(1, 500)]
    lines += [f"epoch {epoch} is over\n" for epoch in range(1000)]
    progress = {line.who.rank: line.text for line in one(tmp_path, "".join(lines)).files[0].progress}
    assert progress == {0: "[rank0]: step 498 done", 1: "[rank1]: step 499 done", None: "epoch 999 is over"}
