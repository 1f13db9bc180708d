"""Every table of cases is asked for, and a case that is not like the others is refused."""

import re
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

import pytest

from tests.support.cases import cases, cases_with, from_cases, owner, tables
from tests.support.each import each
from tests.support.paths import ROOT

FILES = [*(ROOT / "tests").rglob("cases/*.yaml")]


class Colour(Enum):
    RED = "red"


@dataclass(frozen=True)
class Spot:
    line: int = 1


@each("file", FILES)
def test_a_test_asks_for_every_table(file: Path) -> None:
    module = owner(file)
    text = Path(module).read_text()
    asked = {*re.findall(r"^ *@cases(?:_with\([^@]*\))?\n(?: *@.*\n)* *def (\w+)", text, re.MULTILINE)}
    asked |= {*re.findall(r'\(\s*__file__,\s*"(\w+)"', text)}
    assert {*tables(str(module))} == asked


@cases
def test_a_value_has_the_type_that_the_test_states(
    pair: tuple[str, int], colour: Colour, path: Path, anything: object
) -> None:
    assert pair == ("a", 1)
    assert colour is Colour.RED
    assert path == Path("/a/b")
    assert anything == ["a", 1]


@cases
def test_a_case_may_have_a_name(request: pytest.FixtureRequest, name: str) -> None:
    assert f"[{name}]" in request.node.name


def shown(line: int, *more: int, **named: Colour) -> str:
    return f"{line} {more} {named}"


@cases_with(shown, Spot, range, HERE=Spot(3))
def test_a_value_may_be_made(made: object, said: str) -> None:
    """Its arguments have the types that the maker states."""
    assert str(made) == said


@cases
def test_a_case_may_be_marked(request: pytest.FixtureRequest, mark: str) -> None:
    assert [each.name for each in request.node.own_markers if each.name != "parametrize"] == [mark]


def test_a_text() -> None:
    assert from_cases(__file__, "TEXT", str) == "no\n"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("test: [{a: 1}, {}]", "one case has a, another "),
        ("test: [{a: 1}, {b: 1}]", "one case has a, another b"),
        ("test: {x: {a: 1}, x: {a: 2}}", "given twice"),
        ("test: [{a: one}]", "Expected `int`"),
        ("test: [{c: 1}]", "^'c'$"),
        ("test: [{b: {x: [{line: 1}, {lime: 1}]}}]", "there is no field {'lime'}"),
        ("other: [{a: 1}]", "^'test'$"),
        ("test: [{a: !made [1]}]", "^'made'$"),
        ("test: [{a: !the WORD}]", "^'WORD'$"),
        ("test: [{a: !Spot {lime: 1}}]", "unexpected keyword argument 'lime'"),
    ],
)
def test_what_would_hide_a_case_is_refused(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "cases").mkdir()
    (tmp_path / "cases/wrong.yaml").write_text(text)
    code = compile("def test(a): pass", str(tmp_path / "test_wrong.py"), "exec")
    names: dict[str, object] = {}
    exec(code, names)
    test = names["test"]
    assert callable(test)
    test.__annotations__ = {"a": int, "b": dict[str, tuple[Spot, ...]]}
    with pytest.raises((AssertionError, ValueError, KeyError, TypeError), match=said):
        cases_with(Spot)(test)
