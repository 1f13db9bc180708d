"""Compares values with a JSON Schema, as far as the schemas here go."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

TYPES: Mapping[str, type | tuple[type, ...]] = {
    "string": str,
    "integer": int,
    "number": (int, float),
    "boolean": bool,
    "array": list,
    "object": dict,
    "null": type(None),
}


def misfits(
    value: Any, schema: Mapping[str, Any], path: str = "$", parts: Mapping[str, Any] | None = None
) -> Iterator[str]:
    """The places where a value does not fit a schema; unknown keys are wrong too. `parts` are its $defs."""
    parts = schema.get("$defs", {}) if parts is None else parts
    if "$ref" in schema:
        schema = parts[schema["$ref"].removeprefix("#/$defs/")]
    if schema.get("x-kubernetes-int-or-string"):
        text = value if isinstance(value, str) else str(value)
        if isinstance(value, bool) or not re.fullmatch(schema.get("pattern", ".*"), text):
            yield f"{path}: {value!r} is not a quantity"
        return
    if "anyOf" in schema:
        all_of = [list(misfits(value, one, path, parts)) for one in schema["anyOf"]]
        yield from min(all_of, key=len)
        return
    kind = schema.get("type")
    if kind and (not isinstance(value, TYPES[kind]) or (isinstance(value, bool) and kind != "boolean")):
        yield f"{path}: {value!r} is not of type {kind}"
        return
    if "enum" in schema and value not in schema["enum"]:
        yield f"{path}: {value!r} is not one of {schema['enum']}"
    if isinstance(value, list):
        if not schema.get("minItems", 0) <= len(value) <= schema.get("maxItems", len(value)):
            yield f"{path}: {len(value)} of them"
        for number, each in enumerate(value):
            yield from misfits(each, schema["items"] or {}, f"{path}[{number}]", parts)
    elif isinstance(value, dict):
        yield from (f"{path}: {name} is missing" for name in schema.get("required", ()) if name not in value)
        known = schema.get("properties")
        for name, each in value.items():
            if known and name in known:
                yield from misfits(each, known[name], f"{path}.{name}", parts)
            elif "additionalProperties" in schema:
                yield from misfits(each, schema["additionalProperties"], f"{path}.{name}", parts)
            elif known is not None:
                yield f"{path}: there is no {name}"
