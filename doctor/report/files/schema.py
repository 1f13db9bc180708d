"""The JSON Schema of reports, generated from their types: each field with its sentence in fields.txt."""

from collections.abc import Iterable, Iterator
from typing import Any

import msgspec
from msgspec.inspect import DataclassType, StructType, multi_type_info

from doctor.text.hostprogram import sections

DIALECT = "https://json-schema.org/draft/2020-12/schema"
_TOLD = sections(__file__, "fields.txt")
_INSIDE = ("type", "types", "item_type", "item_types", "key_type", "value_type", "fields")


def schema_of(*kinds: type) -> dict[str, Any]:
    """The schema of a report, which is one of these types. Fields that are always written are required."""
    refs, parts = msgspec.json.schema_components(kinds, ref_template="#/$defs/{name}")
    for kind in _with_fields(multi_type_info(kinds)):
        part, says = parts[kind.cls.__name__], _sentences(kind.cls)
        for field in kind.fields:
            part["properties"][field.encode_name]["description"] = says[field.name]
            part["properties"][field.encode_name].pop("default", None)
        left_out = msgspec.NODEFAULT  # a field that has no default is always written
        part["required"] = [
            each.encode_name
            for each in kind.fields
            if each.required or not (each.default is each.default_factory is left_out)
        ]
    return {"$schema": DIALECT, "title": "A report of doctor", "anyOf": [*refs], "$defs": parts}


def _with_fields(found: Any) -> Iterator[StructType | DataclassType]:
    """The types with fields among all the parts of a type."""
    if isinstance(found, StructType | DataclassType):
        yield found
    inside = found if isinstance(found, Iterable) else (getattr(found, name, ()) for name in _INSIDE)
    for each in inside:
        yield from _with_fields(each)


def _sentences(kind: type) -> dict[str, str]:
    """The sentence of each field, inherited ones included."""
    return {
        name: says for each in reversed(kind.__mro__) for name, says in _TOLD.get(each.__name__, {}).items()
    }
