"""What is said after the command has ended badly."""

from __future__ import annotations

from doctor.around.after import not_clean
from doctor.logs.model import LogOutcome
from tests.support.logs.conclusions import explaineds


def test_logs_without_a_complaint_are_not_clean() -> None:
    known = explaineds()
    assert not_clean(known["clean"]).conclusion.outcome is LogOutcome.UNKNOWN
    others = [each for each in known.values() if each.conclusion.outcome is not LogOutcome.CLEAN]
    assert [not_clean(each) for each in others] == others
