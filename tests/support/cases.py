"""Tables of cases and texts as files: what test_NAME.py goes through stands in cases/NAME.yaml beside it.

A table has the name of its test. Values have the types that the test states for its arguments: a list of the
file is a tuple if the test says so, and a word is the member of an enumeration that has this value.
"""

import inspect
from collections.abc import Callable, Hashable, Mapping
from dataclasses import fields, is_dataclass
from functools import cache
from pathlib import Path, PurePath
from typing import Any, TypeVar, get_type_hints

import msgspec
import pytest
import yaml

from tests.support.paths import ROOT

Test = TypeVar("Test", bound=Callable[..., None])
Form = TypeVar("Form")


def cases(test: Test) -> Test:
    """Like `pytest.mark.parametrize`, with the table that has the name of the test.

    It is a list of cases or, if they have names, a mapping of names to cases. Each case maps every argument
    to its value.
    """
    plain = inspect.unwrap(test)
    rows = tables(plain.__code__.co_filename)[plain.__name__]
    named = [*rows.items()] if isinstance(rows, dict) else [(None, row) for row in rows]
    arguments = [*named[0][1]]
    types = get_type_hints(plain)
    values = [_case(row, arguments, types, name) for name, row in named]
    parametrized: Test = pytest.mark.parametrize(arguments, values)(test)
    return parametrized


def from_cases(file: str, name: str, form: type[Form]) -> Form:
    """What has this name in the file of cases that belongs to a test file or to a module that tests share."""
    found: Form = _read(tables(file)[name], form)
    return found


@cache
def tables(file: str) -> Mapping[str, Any]:
    """All that stands in the file of cases that belongs to a test file."""
    found: Mapping[str, Any] = yaml.load(cases_of(Path(file)).read_text("utf-8"), _Loader)
    return found


def cases_of(module: Path) -> Path:
    return module.parent / "cases" / f"{module.stem.removeprefix('test_')}.yaml"


def owner(written: PurePath) -> PurePath:
    """The test file, or the module that tests share, to which a file of cases belongs."""
    shared = written.parents[1] / f"{written.stem}.py"
    return shared if (ROOT / shared).exists() else shared.with_name(f"test_{shared.name}")


def _case(row: Mapping[str, Any], arguments: list[str], types: Mapping[str, Any], name: str | None) -> Any:
    assert [*row] == arguments, f"one case has {', '.join(arguments)}, another {', '.join(row)}"
    return pytest.param(*(_read(row[argument], types[argument]) for argument in arguments), id=name)


def _read(value: object, form: Any) -> Any:
    read = msgspec.convert(value, form, dec_hook=_as_written)
    _refuse_unknown(value, read)
    return read


def _refuse_unknown(value: Any, read: Any) -> None:
    """A field that its class does not have would be read as its default."""
    if is_dataclass(read):
        assert not (more := {*value} - {field.name for field in fields(read)}), f"there is no field {more}"
        for name in value:
            _refuse_unknown(value[name], getattr(read, name))
    elif isinstance(read, (list, tuple)):
        for each, its in zip(value, read, strict=True):
            _refuse_unknown(each, its)
    elif isinstance(read, dict):
        _refuse_unknown([*value.values()], [*read.values()])


def _as_written(kind: type[Any], value: object) -> object:
    """A value of a type that YAML does not have, such as a path."""
    return value if kind is object else kind(value)


class _Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc] # the C loader is much faster
    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        keys = [key.value for key, _ in node.value]
        assert len({*keys}) == len(keys), f"a key that is given twice hides a case:{node.start_mark}"
        found: dict[Hashable, Any] = super().construct_mapping(node, deep)
        return found
