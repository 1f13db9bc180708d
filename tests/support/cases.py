"""Tables of cases and texts as files: what test_NAME.py goes through stands in cases/NAME.yaml beside it.

A table has the name of its test. Values have the types that the test states for its arguments: a list of the
file is a tuple if the test says so, and a word is the member of an enumeration that has this value.
`!npu {health: Alarm}` is what the function or class `npu` makes of these arguments, `!the FLAT` what has
this name; the test says which names its table may use.
"""

import inspect
from collections.abc import Callable, Collection, Hashable, Mapping
from dataclasses import dataclass, fields, is_dataclass
from functools import cache, partial
from pathlib import Path, PurePath
from typing import Any, TypeVar, get_origin, get_type_hints

import msgspec
import pytest
import yaml

from tests.support.paths import ROOT

Test = TypeVar("Test", bound=Callable[..., None])
Form = TypeVar("Form")
Names = Mapping[str, Any]
MARKS = "marks"


@dataclass(frozen=True)
class Named:
    """What has this name or, if arguments are given, by name or in their order, what it makes of them."""

    name: str
    given: Mapping[str, Any] | list[Any] | None


def cases(test: Test) -> Test:
    """Like `pytest.mark.parametrize`, with the table that has the name of the test.

    It is a list of cases or, if they have names, a mapping of names to cases. Each case maps every argument
    to its value; one with `marks: long` has this mark.
    """
    return cases_with()(test)


def cases_with(*makers: Callable[..., Any], **more: Any) -> Callable[[Test], Test]:
    """The same; the table may use these functions and classes, and what has these names."""
    return lambda test: _parametrized(test, names_of(makers) | more)


def _parametrized(test: Test, names: Names) -> Test:
    plain = inspect.unwrap(test)
    rows = tables(plain.__code__.co_filename)[plain.__name__]
    named = [*rows.items()] if isinstance(rows, dict) else [(None, row) for row in rows]
    arguments = [argument for argument in named[0][1] if argument != MARKS]
    types = get_type_hints(plain)
    values = [_case(row, arguments, types, name, names) for name, row in named]
    parametrized: Test = pytest.mark.parametrize(arguments, values)(test)
    return parametrized


def from_cases(file: str, name: str, form: type[Form], *makers: Callable[..., Any], **more: Any) -> Form:
    """What has this name in the file of cases that belongs to a test file or to a module that tests share."""
    found: Form = _read(tables(file)[name], form, names_of(makers) | more)
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


def _case(
    row: Mapping[str, Any], arguments: list[str], types: Mapping[str, Any], name: str | None, names: Names
) -> Any:
    own = [argument for argument in row if argument != MARKS]
    assert own == arguments, f"one case has {', '.join(arguments)}, another {', '.join(own)}"
    marks = [getattr(pytest.mark, row[MARKS])] if MARKS in row else []
    values = (_read(row[argument], types[argument], names) for argument in arguments)
    return pytest.param(*values, id=name, marks=marks)


def names_of(makers: Collection[Callable[..., Any]]) -> dict[str, Any]:
    return {maker.__name__: maker for maker in makers}


def _read(value: object, form: Any, names: Names) -> Any:
    return _typed(_resolved(value, names), form)


def _resolved(value: Any, names: Names) -> Any:
    if isinstance(value, list):
        return [_resolved(each, names) for each in value]
    if isinstance(value, dict):
        return {key: _resolved(each, names) for key, each in value.items()}
    if not isinstance(value, Named):
        return value
    named = names[value.name]
    return named if value.given is None else make(named, _resolved(value.given, names))


def make(maker: Callable[..., Any], given: Any) -> Any:
    """What it makes of arguments of a file, which get the types that it states for them."""
    types = {} if isinstance(maker, partial) else get_type_hints(maker)
    if not types:
        return maker(*given) if isinstance(given, list) else maker(**given)
    signature = inspect.signature(maker)
    bound = signature.bind(*given) if isinstance(given, list) else _by_name(signature, given)
    for name, value in bound.arguments.items():
        form: Any = types.get(name, Any)
        kind = signature.parameters[name].kind
        if kind is inspect.Parameter.VAR_POSITIONAL:
            form = tuple[form, ...]
        elif kind is inspect.Parameter.VAR_KEYWORD:
            form = dict[str, form]
        bound.arguments[name] = _typed(value, form)
    return maker(*bound.args, **bound.kwargs)


def _by_name(signature: inspect.Signature, given: Mapping[str, Any]) -> inspect.BoundArguments:
    """Also `*these`, as a list."""
    these = {name for name, each in signature.parameters.items() if each.kind is each.VAR_POSITIONAL}
    bound = signature.bind_partial(**{name: value for name, value in given.items() if name not in these})
    bound.arguments.update({name: given[name] for name in these & {*given}})
    return bound


def _typed(value: Any, form: Any) -> Any:
    try:
        read = msgspec.convert(value, form, dec_hook=_as_written)
    except TypeError:  # a union of classes, of which no mapping could tell which is meant
        return value
    _refuse_unknown(value, read)
    return read


def _refuse_unknown(value: Any, read: Any) -> None:
    """A field that its class does not have would be read as its default."""
    if is_dataclass(read) and isinstance(value, dict):
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
    return value if kind is object or inspect.isabstract(get_origin(kind) or kind) else kind(value)


class _Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc] # the C loader is much faster
    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        keys = [key.value for key, _ in node.value]
        assert len({*keys}) == len(keys), f"a key that is given twice hides a case:{node.start_mark}"
        found: dict[Hashable, Any] = super().construct_mapping(node, deep)
        return found


def _called(loader: Any, name: str, node: yaml.Node) -> Named:
    mapping = isinstance(node, yaml.MappingNode)
    given = loader.construct_mapping if mapping else loader.construct_sequence
    return Named(name, given(node, deep=True))


_Loader.add_multi_constructor("!", _called)
_Loader.add_constructor("!the", lambda loader, node: Named(loader.construct_scalar(node), None))
