"""YAML with the line and column of every key and value; plain data only, and bounded.

The tree is built from the parser's events, so that no objects are constructed, nesting is bounded and aliases
cannot multiply: aliases, anchors and tags are mistakes. Only null, true, false and decimal numbers are not
text (`no`, `010`, `22:30` and dates stay as written). The text as written is kept beside the value, since
`driver: 24.10` means text.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import yaml
from yaml import ScalarEvent

from doctor.errors import InputErrors, Mistake
from doctor.text.textfile import read_text, refuse, shown

MOST_DEPTH = 16
MOST_NODES = 1_000_000

_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # the C loader is ten times faster
_INTEGER = re.compile(r"[-+]?(?:0|[1-9][0-9]{0,17})")
_DECIMAL = re.compile(r"[-+]?(?:0|[1-9][0-9]{0,17})(?:\.[0-9]{1,18})?(?:[eE][-+]?[0-9]{1,2})?")
_WORDS = {"true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False}
NULLS = ("", "~", "null", "Null", "NULL")


class Scalar(NamedTuple):
    """One value. A `quoted` value is text, whatever it looks like."""

    line: int
    text: str
    quoted: bool = False
    column: int = 0

    @property
    def value(self) -> str | int | float | bool | None:
        if self.quoted:
            return self.text
        if self.text in NULLS:
            return None
        if _INTEGER.fullmatch(self.text):
            return int(self.text)
        if _DECIMAL.fullmatch(self.text):
            return float(self.text)
        return _WORDS.get(self.text, self.text)


class Listing(NamedTuple):
    line: int
    items: tuple[Node, ...]
    column: int = 0


class YamlTable(NamedTuple):
    """Keys and values in the order of the file. If a key is given twice, only the first is kept."""

    line: int
    rows: tuple[tuple[Scalar, Node], ...]
    column: int = 0


Node = Scalar | Listing | YamlTable


@dataclass(frozen=True, slots=True)
class Document:
    """`root` is None for an empty file. `mistakes` are those that did not stop the reading."""

    file: str
    root: Node | None
    mistakes: tuple[Mistake, ...]


def read_yaml(path: Path) -> Document:
    """The file as a tree. Raises InputErrors if it cannot be read at all."""
    return parse_yaml(read_text(path), str(path))


def parse_yaml(text: str, file: str) -> Document:
    """Like `read_yaml`, for text that has been read already."""
    _refuse_unprintable(text, file)
    mistakes: list[Mistake] = []
    try:
        root = _tree(iter(_LOADER(text).get_event, None), file, mistakes)
    except yaml.MarkedYAMLError as error:
        raise InputErrors([_syntax(error, text, file)]) from None
    except yaml.YAMLError as error:
        raise InputErrors([Mistake(file, None, f"is not YAML: {shown(str(error))}")]) from None
    return Document(file, root, tuple(mistakes))


def plain(node: Node | None) -> Any:
    """The tree as None, bool, int, float, str, list and dict, for a typed decoder. Keys stay as written."""
    if isinstance(node, YamlTable):
        return {key.text: plain(value) for key, value in node.rows}
    if isinstance(node, Listing):
        return [plain(item) for item in node.items]
    return None if node is None else node.value


def walk(node: Node | None, path: str = "$") -> Iterator[tuple[str, int]]:
    """The path and line of every value; paths are those of msgspec's errors: `$.hosts[0].port`."""
    if node is None:
        return
    yield path, node.line
    if isinstance(node, YamlTable):
        for key, value in node.rows:
            yield from walk(value, f"{path}.{key.text}")
    elif isinstance(node, Listing):
        for index, item in enumerate(node.items):
            yield from walk(item, f"{path}[{index}]")


def convert(document: Document, kind: type[Any], file: str) -> Any:
    """The document as a value of that type; raises InputErrors with file and line."""
    if document.mistakes:
        raise InputErrors(document.mistakes)
    try:
        return msgspec.convert(plain(document.root), kind, strict=True)
    except msgspec.ValidationError as error:
        text, _, path = str(error).partition(" - at `")
        lines = dict(walk(document.root))
        place = path.rstrip("`")  # a value of a mapping with free keys is [...] in it
        line = lines.get(place) or lines.get(place.partition("[...]")[0], 1)
        raise InputErrors([Mistake(file, line, text)]) from None


def _tree(events: Iterable[Any], file: str, mistakes: list[Mistake]) -> Node | None:
    """The tree of the parser's events, in one loop: a call for each would take longer than the parser."""
    opened: list[tuple[list[Node], Any]] = []
    """What surrounds the lists and mappings that have not ended yet, and their own events."""
    nodes: list[Node] = []
    """Those of the innermost one; keys and values of a mapping alternate."""
    table, known, documents = False, 0, 0
    for event in events:
        if isinstance(event, ScalarEvent) and event.tag is event.anchor is None and known < MOST_NODES:
            mark: Any = event.start_mark
            known += 1
            nodes.append(Scalar(mark.line + 1, event.value, bool(event.style), mark.column + 1))
        elif isinstance(event, yaml.NodeEvent):
            known += 1
            _check(event, file, known, len(opened), key=table and not len(nodes) % 2)
            opened.append((nodes, event))
            nodes, table = [], isinstance(event, yaml.MappingStartEvent)
        elif isinstance(event, yaml.CollectionEndEvent):
            outer, begun = opened.pop()
            outer.append(_closed(begun.start_mark, nodes, file, mistakes if table else None))
            nodes, table = outer, bool(opened) and isinstance(opened[-1][1], yaml.MappingStartEvent)
        elif isinstance(event, yaml.DocumentStartEvent):
            documents += 1
            if documents > 1:
                _stop(file, event, "a second document ('---') begins here: one is allowed")
    return nodes[0] if nodes else None


def _check(event: Any, file: str, known: int, depth: int, *, key: bool) -> None:
    if isinstance(event, yaml.AliasEvent):
        _stop(file, event, f"*{event.anchor} repeats a part of the file by reference: write it out")
    if known > MOST_NODES:
        _stop(file, None, f"has more than {MOST_NODES:,} values: is it the right file?")
    if depth >= MOST_DEPTH:
        _stop(file, event, f"is nested more than {MOST_DEPTH} deep")
    if event.tag is not None:
        _stop(file, event, f"{shown(event.tag)} is a tag, and tags are not allowed")
    if event.anchor is not None:
        _stop(file, event, f"&{event.anchor} is an anchor, and there are no references here: write it out")
    if key:
        _stop(file, event, "a key is a single value, not a list or mapping")


def _stop(file: str, event: Any, message: str) -> None:
    raise InputErrors([Mistake(file, event and event.start_mark.line + 1, message)])


def _closed(mark: Any, nodes: list[Node], file: str, mistakes: list[Mistake] | None) -> Node:
    """A mapping if there is a list for its mistakes, else a list."""
    if mistakes is None:
        return Listing(mark.line + 1, tuple(nodes), mark.column + 1)
    rows: dict[str, tuple[Scalar, Node]] = {}
    for key, value in zip(nodes[::2], nodes[1::2], strict=True):
        assert isinstance(key, Scalar)  # ensured by _check
        first = rows.setdefault(key.text, (key, value))[0]
        if first is not key:
            message = f"{shown(key.text)} is given twice, first on line {first.line}"
            mistakes.append(Mistake(file, key.line, message, key.column))
    return YamlTable(mark.line + 1, tuple(rows.values()), mark.column + 1)


def _refuse_unprintable(text: str, file: str) -> None:
    """Raises with the line of the character, which the C parser does not report."""
    pattern = yaml.reader.Reader.NON_PRINTABLE
    if pattern.search(text):
        refuse(
            Mistake(file, number, f"{shown(match[0])} is a character that YAML does not allow")
            for number, line in enumerate(text.split("\n"), start=1)
            if (match := pattern.search(line))
        )


def _syntax(error: yaml.MarkedYAMLError, text: str, file: str) -> Mistake:
    mark = error.problem_mark
    line, column = (mark.line + 1, mark.column + 1) if mark else (None, 0)
    message = "is not YAML: " + ", ".join(part for part in (error.context, error.problem) if part)
    lines = text.split("\n")
    written = lines[line - 1] if line is not None and line <= len(lines) else ""
    if any(map(_is_bare_nodeset, re.split("['\"]", written))):
        message += "; inside { } and [ ] a node set needs quotes: 'node[1-4]'"
    elif "\t" in written:
        message += "; indent with spaces, not with tabs"
    return Mistake(file, line, message, column)


def _is_bare_nodeset(unquoted: str) -> bool:
    """Whether the text opens a { } or [ ] with a bare node set in it. One scan, since lines may be long."""
    opened = re.search(r"[\[{,]", unquoted)
    return opened is not None and re.search(r"\w\[", unquoted[opened.end() :]) is not None
