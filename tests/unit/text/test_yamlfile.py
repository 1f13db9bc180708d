"""YAML with lines: values, places, and what is refused."""

from pathlib import Path

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from doctor.errors import InputErrors
from doctor.text import yamlfile
from doctor.text.yamlfile import Listing, Scalar, YamlTable, parse_yaml, plain, read_yaml, walk
from tests.support.cases import cases
from tests.support.limits import within


@pytest.fixture(params=["c", "python"], autouse=True)
def loader(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Both parsers, since a PyYAML without libyaml has only the slow one."""
    monkeypatch.setattr(yamlfile, "_LOADER", yaml.CSafeLoader if request.param == "c" else yaml.SafeLoader)
    return str(request.param)


def mistake(text: str) -> str:
    with pytest.raises(InputErrors) as caught:
        parse_yaml(text, "f")
    (only,) = caught.value.mistakes
    return str(only)


def test_values_and_lines() -> None:
    document = parse_yaml("# first\na: 1\nb:\n  - x\n  - {c: 'two'}\nempty:\n", "f")
    assert document.root == YamlTable(
        2,
        (
            (Scalar(2, "a", column=1), Scalar(2, "1", column=4)),
            (
                Scalar(3, "b", column=1),
                Listing(
                    4,
                    (
                        Scalar(4, "x", column=5),
                        YamlTable(5, ((Scalar(5, "c", column=6), Scalar(5, "two", True, 9)),), 5),
                    ),
                    3,
                ),
            ),
            (Scalar(6, "empty", column=1), Scalar(6, "", column=7)),
        ),
        1,
    )
    assert plain(document.root) == {"a": 1, "b": ["x", {"c": "two"}], "empty": None}
    assert dict(walk(document.root)) == {
        "$": 2,
        "$.a": 2,
        "$.b": 4,
        "$.b[0]": 4,
        "$.b[1]": 5,
        "$.b[1].c": 5,
        "$.empty": 6,
    }
    assert document.mistakes == ()


@cases
def test_scalars(text: str, value: object) -> None:
    found = plain(parse_yaml(f"a: {text}", "f").root)["a"]
    assert found == value
    assert type(found) is type(value)


def test_text_is_kept_as_written() -> None:
    root = parse_yaml("driver: 24.10\n", "f").root
    assert isinstance(root, YamlTable)
    value = root.rows[0][1]
    assert isinstance(value, Scalar)
    assert (value.text, value.value) == ("24.10", 24.1)


@pytest.mark.parametrize("text", ["", "# nothing\n", "\n\n"])
def test_a_file_without_content(text: str) -> None:
    document = parse_yaml(text, "f")
    assert document.root is None
    assert plain(document.root) is None
    assert list(walk(document.root)) == []


def test_duplicate_keys_do_not_stop_the_reading() -> None:
    document = parse_yaml("a: 1\nb: {x: 1, x: 2}\na: 3\n", "f")
    assert plain(document.root) == {"a": 1, "b": {"x": 1}}
    assert [str(m) for m in document.mistakes] == [
        "f:2:11: 'x' is given twice, first on line 2",
        "f:3:1: 'a' is given twice, first on line 1",
    ]


@cases
def test_refused_with_the_line(text: str, said: str) -> None:
    assert said in mistake(text)


@pytest.mark.parametrize(
    "text",
    [
        "a: &a [x,x,x,x,x,x,x,x,x]\n"
        + "".join(
            f"{c}: &{c} [{','.join(['*' + p] * 9)}]\n" for p, c in zip("abcdefgh", "bcdefghi", strict=True)
        ),
        "[" * 1_000_000,
        "{a: " * 300_000,
        "- " * 1_000_000,
        "? " * 500_000,
        "a: [" + "," * 1_000_000,
    ],
    ids=["aliases", "lists", "mappings", "dashes", "keys", "commas"],
)
def test_bombs_are_refused_fast(text: str) -> None:
    with within(10):
        assert mistake(text)


def test_too_many_values(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(yamlfile, "MOST_NODES", 10)
    assert mistake("[" + "1," * 20 + "]") == "f: has more than 10 values: is it the right file?"


def test_the_file_is_read_once_and_bounded(tmp_path: Path) -> None:
    path = tmp_path / "f.yaml"
    path.write_text("a: 1\n")
    assert read_yaml(path).file == str(path)
    with pytest.raises(InputErrors, match="does not exist"):
        read_yaml(tmp_path / "none")


@settings(deadline=None)
@given(st.text(max_size=60) | st.text(alphabet="ab:-[]{}&*!|>'\"?#,%@ \n\t~1", max_size=40))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        document = parse_yaml(text, "f")
    except InputErrors as error:
        mistakes = error.mistakes
    else:
        mistakes = document.mistakes
        assert all(line > 0 for _, line in walk(document.root))
    assert all(m.message.isprintable() for m in mistakes)
