"""The reason of an end is named, and not only what launchers, batch systems and shells repeat of it."""

from pathlib import Path

from doctor.logs.model import LogOutcome
from tests.support.cases import cases
from tests.support.fault_logs import pasted


@cases
def test_the_reason_is_in_the_first_words(text: str, says: str, ranks: list[int], tmp_path: Path) -> None:
    found = pasted(tmp_path, text)
    first = found.charges[0]
    assert (first.says[: len(says)], [each.rank for each in first.who if each.rank is not None]) == (
        says,
        ranks,
    )


@cases
def test_those_who_only_report_an_end_leave_it_undecided(text: str, tmp_path: Path) -> None:
    found = pasted(tmp_path, text)
    assert found.outcome is LogOutcome.UNKNOWN
    assert not any(each.who for each in found.charges)


@cases
def test_sound_twins_are_clean(text: str, tmp_path: Path) -> None:
    found = pasted(tmp_path, text)
    assert (found.outcome, found.charges) == (LogOutcome.CLEAN, ())


def test_an_exception_that_was_caught_is_no_reason(tmp_path: Path) -> None:
    caught = "Traceback (most recent call last):\n" + '  File "/w/t.py", line 3, in load\n    f()\n'
    caught += "ValueError: bad cache\nno cache: it is computed\nsaved\nnothing left to do\n"
    found = pasted(tmp_path, caught + "srun: error: n2: task 3: Exited with exit code 1\n").charges[0]
    assert found.says == "rank 3 on n2 ended with exit code 1"
