"""Programs that a shell runs, on a host or for the user, and tables: each is a file beside its module."""

from collections.abc import Callable, Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any


def host_program(module: str, name: str, **values: object) -> str:
    """The text of the program `name` beside a module, with the values in the places of their @names@."""
    text = Path(module).with_name(name).read_text(encoding="utf-8")
    for key, value in values.items():
        text = text.replace(f"@{key}@", str(value))
    return text


def table(module: str, name: str) -> list[list[str]]:
    """The rows of a table beside a module: its blocks of lines, without the first, which is about it."""
    return [row.split("\n") for row in host_program(module, name).strip("\n").split("\n\n")[1:]]


def sections(module: str, name: str) -> dict[str, dict[str, str]]:
    """The blocks of a table by their first lines; each further line is a key and, after a colon, words."""
    return {head: dict(row.split(": ", 1) for row in rows) for head, *rows in table(module, name)}


_READERS: Mapping[str, Callable[[str], Any]] = {
    "tuple": lambda words: tuple(words.split()),
    "frozenset": lambda words: frozenset(words.split()),
    "int": int,
    "bool": bool,
}


def fields_in(kind: Any, told: Mapping[str, str]) -> dict[str, Any]:
    """The fields of a dataclass in a block of a table: texts, words, numbers, and 1 for yes."""
    types = {each.name: getattr(each.type, "__name__", each.type).partition("[")[0] for each in fields(kind)}
    return {name: _READERS.get(types[name], str)(words) for name, words in told.items()}
