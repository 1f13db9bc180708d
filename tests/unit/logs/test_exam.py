"""Two sets of logs of strangers, with the truth written before they were read: no answer may change unseen.

`truth.tsv` says what happened, how the answer was judged when nobody had seen the log (blind), how that of
today is judged (now), and what it is. UPDATE_EXAM=1 writes the answers of today; then judge those that
changed by hand, and correct the column `now` and the counts in docs/explain-exam.md.
"""

from __future__ import annotations

import csv
import os
from collections import Counter
from pathlib import Path

import pytest

from doctor.logs.judge.words import who
from doctor.logs.model import Conclusion
from doctor.model import Confidence
from tests.support.fault_logs import accusations, concluded
from tests.support.paths import ROOT

SAMPLES = ROOT / "tests" / "samples" / "logs"
EXAMS = ("exam", "exam2")
GRADES = ("right", "partly", "rightly unknown", "unknown", "silent", "wrong")
INNOCENT = ("healthy training", "foreign")


both = pytest.mark.parametrize("exam", EXAMS)


def cases(exam: str) -> list[dict[str, str]]:
    with (SAMPLES / exam / "truth.tsv").open(newline="") as table:
        return list(csv.DictReader(table, delimiter="\t", quoting=csv.QUOTE_NONE))


def answer(said: Conclusion) -> str:
    """The outcome and the causes: how sure each is, its symptom and its parties."""
    causes = [
        f"{each.confidence.value} {each.symptom or each.brief or each.says[:60]}"
        + (f" {who(each.who)}" if each.who else "")
        for each in accusations(said)
    ]
    return f"{said.outcome.value}: {'; '.join(causes)}".rstrip(": ")


@pytest.mark.slow
@both
def test_no_answer_changes_unseen(exam: str) -> None:
    rows, changed = cases(exam), []
    for row in rows:
        today = answer(concluded(SAMPLES / exam / row["file"]))
        if today != row["answer"]:
            changed.append(f"{row['file']} ({row['now']}): {row['answer']} -> {today}")
            row["answer"] = today
    if changed and os.environ.get("UPDATE_EXAM"):
        write(exam, rows)
    assert changed == []


def write(exam: str, rows: list[dict[str, str]]) -> None:
    lines = ["\t".join(rows[0]), *("\t".join(row.values()) for row in rows)]
    (SAMPLES / exam / "truth.tsv").write_text("\n".join(lines) + "\n")


@both
def test_every_log_is_in_the_table(exam: str) -> None:
    logs = sorted(path.name for path in (SAMPLES / exam).glob("*.log"))
    assert logs == sorted(row["file"] for row in cases(exam))


@both
@pytest.mark.parametrize("family", INNOCENT)
def test_nobody_is_accused_in_logs_without_a_dead_job(exam: str, family: str) -> None:
    some = [row for row in cases(exam) if row["family"] == family]
    assert some
    assert [row["file"] for row in some if row["answer"].startswith("named")] == []


def test_what_the_page_counts() -> None:
    page = (ROOT / "docs" / "explain-exam.md").read_text()
    dead = {exam: [row for row in cases(exam) if row["family"] not in INNOCENT] for exam in EXAMS}
    counts = [Counter(row[column] for row in dead[exam]) for exam in EXAMS for column in ("blind", "now")]
    assert set().union(*counts) <= {*GRADES}
    for grade in GRADES:
        assert f"| {grade} | {' | '.join(str(each[grade]) for each in counts)} |" in page
    assert all(f"{len(rows)} logs of dead jobs" in page for rows in dead.values())


def test_an_answer_that_names_another_is_another_answer(tmp_path: Path) -> None:
    one, other = (tmp_path / f"{rank}.log" for rank in (1, 2))
    for path in (one, other):
        path.write_text(f"[rank{path.stem}]: RuntimeError: CUDA error: uncorrectable ECC error encountered\n")
    answers = {answer(concluded(path)) for path in (one, other)}
    assert len(answers) == 2
    assert all(Confidence.STRONG.value in each for each in answers)
