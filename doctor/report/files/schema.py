"""The JSON Schema of reports, generated from their types: each field with the sentence below it."""

import ast
import inspect
import sys
from collections.abc import Iterable, Iterator
from functools import cache
from itertools import pairwise
from typing import Any

import msgspec
from msgspec.inspect import DataclassType, Field, StructType, multi_type_info

DIALECT = "https://json-schema.org/draft/2020-12/schema"
_INSIDE = ("type", "types", "item_type", "item_types", "key_type", "value_type", "fields")


def schema_of(*kinds: type) -> dict[str, Any]:
    """The schema of a report, which is one of these types. Fields that are always written are required."""
    refs, parts = msgspec.json.schema_components(kinds, ref_template="#/$defs/{name}")
    for kind in _with_fields(multi_type_info(kinds)):
        part, says = parts[kind.cls.__name__], _sentences(kind.cls)
        for field in kind.fields:
            part["properties"][field.encode_name]["description"] = says[field.name]
            part["properties"][field.encode_name].pop("default", None)
        part["required"] = [each.encode_name for each in kind.fields if _is_written(each)]
    return {"$schema": DIALECT, "title": "A report of doctor", "anyOf": [*refs], "$defs": parts}


def _is_written(field: Field) -> bool:
    """Whether a field is always written."""
    return field.required or not (field.default is field.default_factory is msgspec.NODEFAULT)


def _with_fields(found: Any) -> Iterator[StructType | DataclassType]:
    """The types with fields among all the parts of a type."""
    if isinstance(found, StructType | DataclassType):
        yield found
    inside = found if isinstance(found, Iterable) else (getattr(found, name, ()) for name in _INSIDE)
    for each in inside:
        yield from _with_fields(each)


def _sentences(kind: type) -> dict[str, str]:
    """The sentence of each field, inherited ones included."""
    found: dict[str, str] = {}
    for each in reversed(kind.__mro__[:-1]):
        found |= _sentences_in(each.__module__).get(each.__name__, {})
    return found


@cache
def _sentences_in(module: str) -> dict[str, dict[str, str]]:
    """The docstring below each field, by class and field."""
    classes = [each for each in ast.parse(_source(module)).body if isinstance(each, ast.ClassDef)]
    return {each.name: dict(_below(each.body)) for each in classes}


def _source(module: str) -> str:
    try:
        return inspect.getsource(sys.modules[module])
    except OSError:  # a library's, without its source
        return ""


def _below(body: list[ast.stmt]) -> Iterator[tuple[str, str]]:
    for field, text in pairwise(body):
        match field, text:
            case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(says))):
                yield name, " ".join(says.split())
