"""Of the lines that no symptom knows, the most telling one is shown first, with the rank that wrote it."""

from pathlib import Path

from doctor.logs.explanation import Explanation, last_words
from doctor.logs.report import page_of
from tests.support.fault_logs import written
from tests.support.logs.conclusions import text

NOISE = [f"ERROR: widget {letter} is not calibrated" for letter in "abcdefgh"]
STEPS = [f"step {step} of a job" for step in range(300)]
FELL = ["Traceback (most recent call last):", '  File "train.py", line 7, in load', "FrobError: shard 17"]


def test_the_exception_at_the_end_comes_before_all_noise_at_the_beginning(tmp_path: Path) -> None:
    said = written(tmp_path, *NOISE, "loading", *FELL)
    assert said.charges[0].says.startswith("the program ended with an exception: FrobError: shard 17")
    assert said.odd[0].text.startswith("FrobError: shard 17")
    assert said.telling.startswith("it is an exception; it is among the last lines of its file")


def test_the_last_error_comes_before_all_noise_at_the_beginning(tmp_path: Path) -> None:
    said = written(tmp_path, *NOISE, *["waiting for the file system"] * 300, "ERROR: the frob fell off")
    assert said.odd[0].text == "ERROR: the frob fell off"


def test_a_line_that_is_repeated_comes_last(tmp_path: Path) -> None:
    noise = [f"ERROR: cannot reach the dashboard, try no. {number}" for number in range(9)]
    said = written(tmp_path, *noise, "ERROR: the frob fell off", *noise[:1])
    assert [line.text for line in said.odd] == ["ERROR: the frob fell off", noise[0]]


def test_a_line_that_passes_on_another_failure_comes_last(tmp_path: Path) -> None:
    said = written(tmp_path, "ERROR: a child process failed", "ERROR: the frob fell off", "Killed")
    assert said.odd[0].text == "ERROR: the frob fell off"


def test_the_first_of_equal_lines_comes_first(tmp_path: Path) -> None:
    said = written(tmp_path, *(f"[rank{rank}]: ERROR: frob {rank * 'x'} fell off" for rank in (2, 1, 3)))
    assert [line.who.rank for line in said.odd] == [2, 1, 3]


def test_the_report_says_who_wrote_it_and_where_to_look(tmp_path: Path) -> None:
    said = written(tmp_path, *(f"[rank3]: {line}" for line in (*STEPS, "ERROR: the frob fell off")))
    assert said.odd[0].who.rank == 3
    shown = Explanation(said)
    page = page_of(shown)
    card = next(card for card in page.cards if card.word == "UNKNOWN")
    assert [row.label for row in card.rows] == ["look at", "because"]
    assert card.rows[1].lines[0].startswith("rank 3 wrote it; it names a rank or a process")
    assert last_words(shown) == f"No cause is named. Look at {said.odd[0].file}:301 first."
    assert "the frob fell off" in " ".join(text(shown, 200).split())


def test_each_rank_whose_traceback_is_cut_off_is_shown(tmp_path: Path) -> None:
    begins, frame = FELL[:2]
    said = written(
        tmp_path,
        f"[node1:0]: {begins}",
        f"[node1:1]: {begins}",
        f"[node1:0]: {frame}",
        f"[node1:1]: {frame}",
        "[node1:1]: FrobError: shard 17",
        "[node1:0]:     load(",
    )
    cut = [line.text for line in said.odd if "the log ends here" in line.text]
    assert cut == [f"[node1:0]: {begins} the log ends here (train.py:7)"]
