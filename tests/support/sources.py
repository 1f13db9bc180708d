"""Where the sentences of the catalogue come from: the code, the playbooks, and the libraries that speak.

A sentence may be joined at run time. Its words stand beside each other as in some string, except at a joint:
there, one string ends or another begins.
"""

import ast
import os
import re
import shlex
from collections.abc import Iterator
from functools import cache
from itertools import pairwise
from pathlib import Path

import typer
import yaml

from doctor.text.catalogue import HOLE
from tests.support.paths import ROOT

_TOKEN = re.compile(r"[A-Za-z0-9][A-Za-z0-9_'-]*|[^\sA-Za-z0-9]")
_PARTS = re.compile(r"\{[^{}]*\}|%[sd]|\n")
_CHOICE = re.compile(r"\{([^{}|]*)\|([^{}|]*)[^{}]*\}")
Run = tuple[str, ...]


class Sources:
    """All strings from which a sentence can be made."""

    def __init__(self) -> None:
        self.runs: set[Run] = set()
        """Two or three tokens that stand beside each other."""
        self.begins: set[Run] = set()
        self.ends: set[Run] = set()
        self.words: set[str] = set()
        """Strings of one token; the joined ones are parts of a longer string in the code."""
        self.joined: set[str] = set()
        for text, joined in _strings():
            for part in _PARTS.split(text):
                self._add(_tokens(part), joined)

    def _add(self, found: Run, joined: bool) -> None:
        self.runs |= {*pairwise(found), *zip(found, found[1:], found[2:], strict=False)}
        if len(found) > 1:
            self.begins.add(found[:2])
            self.ends.add(found[-2:])
        elif found:
            self.words.add(found[0])
            self.joined |= {found[0]} if joined else set()

    def have(self, template: str) -> bool:
        """Whether a sentence of this template can be made, with the first or the second of its choices."""
        choices = (_CHOICE.sub(which, template) for which in (r"\1", r"\2"))
        return any(all(map(self._makes, HOLE.split(each)[::2])) for each in choices)

    def _makes(self, fixed: str) -> bool:
        found = _tokens(fixed)
        todo, seen = [(0, True)], set[tuple[int, bool]]()
        while todo:
            place = at, free = todo.pop()
            if at == len(found):
                return True
            if place not in seen:
                seen.add(place)
                todo += self._runs(found, at, free)
        return False

    def _runs(self, found: Run, at: int, free: bool) -> Iterator[tuple[int, bool]]:
        """Where a run from here may end, and whether a string ends there. Unless that is so `free`, the next
        run is the beginning of a string."""
        for stop in range(at + 1, len(found) + 1):
            run = found[at:stop]
            alone = len(run) == 1
            if not alone and run[-3:] not in self.runs:
                return
            if not free and not (run[0] in self.joined if alone else run[:2] in self.begins):
                continue
            ends = run[0] in self.joined if alone else run[-2:] in self.ends
            if not alone or ends or run[0] in self.words or len(found) == 1:
                yield stop, ends


def _tokens(text: str) -> Run:
    return tuple(each.lower() for each in _TOKEN.findall(text))


@cache
def sources() -> Sources:
    return Sources()


def _strings() -> Iterator[tuple[str, bool]]:
    """Each string, and whether it is a part of a longer one."""
    code = [path for folder in ("doctor", "checks") for path in (ROOT / folder).rglob("*.py")]
    for path in (*code, *Path(typer.__file__).parent.rglob("*.py"), Path(shlex.__file__)):
        tree = ast.parse(path.read_text())
        parts = {id(part) for node in ast.walk(tree) for part in _parts(node)}
        for node in ast.walk(tree):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                yield node.value, id(node) in parts
    for table in (ROOT / "doctor").rglob("*.txt"):
        for line in table.read_text().splitlines():
            whole, words, what = line, line.partition(": ")[2], line.rpartition("  ")[2]
            yield from ((text, "{" in line) for text in (whole, words, what) if text)
    for path in (ROOT / "playbooks").rglob("*.yaml"):
        yield from ((text, False) for text in _texts(yaml.safe_load(path.read_text())))
    yield from ((os.strerror(number), False) for number in range(1, 134))


def _parts(node: ast.AST) -> list[ast.expr]:
    if isinstance(node, ast.JoinedStr):
        return node.values
    return [node.body, node.orelse] if isinstance(node, ast.IfExp) else []


def _texts(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for each in (*value, *value.values()) if isinstance(value, dict) else value:
            yield from _texts(each)
