"""What a change touches: the folders that mirror it, and the tests that name it."""

from tests.support.cases import cases
from tests.support.paths import ROOT
from tests.touched import ALWAYS, LAB, MIRRORED, PAGES, touched


@cases
def test_a_change_touches(path: str, tests: set[str]) -> None:
    assert {*tests, *ALWAYS} <= {*touched([path])}


def test_a_word_is_no_file() -> None:
    assert len(touched(["scripts/test"])) < 30, "it is not every test"


def test_what_is_named_is_there() -> None:
    assert [path for path in (*ALWAYS, *LAB, *PAGES, *MIRRORED) if not (ROOT / path).exists()] == []


def test_a_change_of_nothing_touches_nothing() -> None:
    assert touched([]) == []


def test_a_file_in_a_folder_that_is_run_is_not_named_again() -> None:
    found = touched(["doctor/text/printable.py", "tests/unit/text/test_redact.py"])
    assert "tests/unit/text" in found
    assert "tests/unit/text/test_redact.py" not in found
