"""One test of a rule for many things names all things that break it, and fails if there is no thing."""

import inspect
from pathlib import Path

import pytest

from tests.support.each import each


def test_all_that_break_a_rule_are_named(tmp_path: Path) -> None:
    @each("number", [1, 2, 3, 4])
    def rule(number: int, tmp_path: Path) -> None:
        assert tmp_path.is_dir()
        if number == 4:
            pytest.fail("so it says")
        assert number % 2, f"{number} is even"

    assert list(inspect.signature(rule).parameters) == ["tmp_path"], "what pytest is to give"
    with pytest.raises(
        AssertionError, match=r"^2 of 4 break it\n(?s:.*)2 is even(?s:.*)\n\n4: Failed: so it says$"
    ):
        rule(tmp_path=tmp_path)


def test_a_rule_for_nothing_proves_nothing() -> None:
    @each("thing", [])
    def rule(thing: object) -> None:
        assert thing

    with pytest.raises(AssertionError, match="for nothing"):
        rule()
