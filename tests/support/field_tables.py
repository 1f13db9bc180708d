"""A JSON Schema as tables for people, which stand in docs/formats.md."""

from collections.abc import Iterator, Mapping
from typing import Any

WORDS = {"string": "text", "integer": "whole number", "number": "number", "boolean": "true or false"}
BASES = {
    "CheckReport": "Envelope",
    "LogsReport": "Envelope",
    "HangReport": "Envelope",
    "SlowReport": "Envelope",
    "DiffReport": "Envelope",
    "RunReport": "Envelope",
    "LogFindingEntry": "FindingEntry",
    "HangFindingEntry": "FindingEntry",
    "SlowFindingEntry": "FindingEntry",
    "SmokeEntry": "SmokeRunEntry",
}
"""A part that has all fields of another is shown without them."""
Schema = Mapping[str, Any]


def field_tables(schema: Schema) -> str:
    """The fields of each part that has any."""
    return "\n".join(line for name in schema["$defs"] for line in _table(name, schema["$defs"]))


def _table(name: str, parts: Schema) -> Iterator[str]:
    part = parts[name]
    if "properties" not in part:
        return
    base = BASES.get(name, "")
    known = parts[base]["properties"] if base else {}
    first, *more = part["description"].split("\n\n")
    yield from (
        f"### {name}",
        "",
        " ".join(first.split()) + (f" All of {_link(base)}, and:" if base else ""),
        "",
    )
    yield from (line for text in more for line in (" ".join(text.split()), ""))
    yield from ("| field | is | |", "|---|---|---|")
    for field, what in part["properties"].items():
        if what != known.get(field):
            there = "" if field in part["required"] else ", or not there"
            yield f"| `{field}` | {_words(what, parts)}{there} | {what['description']} |"
    yield ""


def _link(name: str) -> str:
    return f"[{name}](#{name.lower()})"


def _words(what: Schema, parts: Schema) -> str:
    if "$ref" in what:
        name = what["$ref"].removeprefix("#/$defs/")
        return _link(name) if "properties" in parts[name] else _words(parts[name], parts)
    if "anyOf" in what:
        return " or ".join(_words(one, parts) for one in what["anyOf"])
    if "enum" in what:
        return ", ".join(f"`{value}`" for value in what["enum"])
    if what["type"] == "array":
        of = what["items"] or what["prefixItems"][0]
        return f"list of {_words(of, parts)}"
    if what["type"] == "object":
        return f"object of {_words(what['additionalProperties'], parts)}"
    return WORDS.get(what["type"], str(what["type"]))
