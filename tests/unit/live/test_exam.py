"""The exam of foreign jobs: no change of a rule may answer fewer of them right, or accuse more wrongly."""

from collections import Counter

from tests.exam.jobs import FOLDER, job_answerer, job_cases, read_jobs
from tests.support.printed import assert_typable

BAR, WRONG = {"seen": 178, "unseen": 173}, {"seen": 0, "unseen": 1}
"""How many are right, and may be wrong or false. Raise the one with each rule that answers more of them."""


def test_the_answers_are_not_worse() -> None:
    asked, answer = job_cases(), job_answerer()
    read, sums = read_jobs(asked), Counter[tuple[str, str]]()
    for case in asked:
        given = answer(read[case.name])
        assert_typable(given.text)
        sums[case.half, case.worth(given.code, given.text)] += 1
    for half, bar in BAR.items():
        assert sums[half, "right"] >= bar, sums
        assert sums[half, "wrong"] + sums[half, "false"] <= WRONG[half], sums


def test_each_recording_has_its_truth() -> None:
    assert {case.file for case in job_cases()} == {*FOLDER.glob("*.json.gz")}
