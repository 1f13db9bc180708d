"""A JSON Schema as tables for people, which are the pages of docs/reference."""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from tests.support.cases import from_cases

WORDS = {"string": "text", "integer": "whole number", "number": "number", "boolean": "true or false"}
PAGES = from_cases(__file__, "PAGES", dict[str, tuple[str, str]])
BASES = from_cases(__file__, "BASES", dict[str, str])
Schema = Mapping[str, Any]
REFERENCE = re.compile(r'"#/\$defs/(\w+)"')
FIRST = """A null means: unknown, or it does not apply. [Formats](../formats.md#json) has the rest.

<!-- Generated from the types: see tests/unit/test_envelope.py. -->
"""


def field_pages(schema: Schema) -> dict[str, str]:
    """The text of each page."""
    parts, homes = schema["$defs"], dict[str, str]()
    for page, (_, root) in PAGES.items():
        _settle(root, page, parts, homes)
    return {
        page: f"# {title}\n\n{FIRST}\n"
        + "\n".join(line for name in parts for line in _table(name, page, parts, homes))
        for page, (title, _) in PAGES.items()
    }


def _settle(name: str, page: str, parts: Schema, homes: dict[str, str]) -> None:
    if name not in homes:
        homes[name] = page
        for inner in REFERENCE.findall(json.dumps(parts[name])):
            _settle(inner, page, parts, homes)


def _table(name: str, page: str, parts: Schema, homes: Mapping[str, str]) -> Iterator[str]:
    part = parts[name]
    if "properties" not in part or homes.get(name) != page:
        return
    base = BASES.get(name, "")
    known = parts[base]["properties"] if base else {}
    first, *more = part["description"].split("\n\n")
    text = " ".join(first.split()) + (f" All of [{base}](#{base}), and:" if base else "")
    yield from (f"## {name}", "", _linked(text, page, homes), "")
    yield from (line for text in more for line in (" ".join(text.split()), ""))
    yield from ("| field | is | |", "|---|---|---|")
    for field, what in part["properties"].items():
        if what != known.get(field):
            there = "" if field in part["required"] else ", or not there"
            words = _linked(_words(what, parts), page, homes)
            yield f"| `{field}` | {words}{there} | {what['description']} |"
    yield ""


def _linked(text: str, page: str, homes: Mapping[str, str]) -> str:
    """With links that lead to the page of a part."""

    def link(match: re.Match[str]) -> str:
        home = "" if homes[match[1]] == page else f"{homes[match[1]]}.md"
        return f"]({home}#{match[1].lower()})"

    return re.sub(r"\]\(#(\w+)\)", link, text)


def _words(what: Schema, parts: Schema) -> str:
    if "$ref" in what:
        name = what["$ref"].removeprefix("#/$defs/")
        return f"[{name}](#{name})" if "properties" in parts[name] else _words(parts[name], parts)
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
