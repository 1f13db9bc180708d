"""Finds what can be changed in a source, and draws from it with a seed.

Sites and their changes are drawn by the hash of what they read, so that a change elsewhere in the sources
leaves the others drawn. Expressions in f-strings are left out: Python 3.11 does not know their place.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from hashlib import sha256
from itertools import accumulate
from pathlib import Path

from tests.mutate.change import Change

OPPOSITE: dict[type[ast.cmpop], tuple[str, str]] = {
    ast.Lt: ("<", "<="),
    ast.LtE: ("<=", "<"),
    ast.Gt: (">", ">="),
    ast.GtE: (">=", ">"),
    ast.Eq: ("==", "!="),
    ast.NotEq: ("!=", "=="),
    ast.In: ("in", "not in"),
    ast.NotIn: (r"not\s+in", "in"),
    ast.Is: ("is", "is not"),
    ast.IsNot: (r"is\s+not", "is"),
}
SMALL = 10
"""Numbers below it become the next one, others the double or the half: a limit is not proved to the unit."""


def drawn(root: Path, paths: Iterable[str], seed: int, count: int) -> list[Change]:
    """One change of each of `count` sites."""

    def lot(*of: object) -> str:
        return sha256(f"{seed} {of}".encode()).hexdigest()

    sites = [site for path in paths for site in sites_of(path, (root / path).read_bytes())]
    sites.sort(key=lambda site: lot(site[0].path, site[0].scope, site[0].before, site[0].nth))
    return [min(site, key=lambda change: lot(change.key)) for site in sites[:count]]


def sites_of(path: str, source: bytes) -> list[Sequence[Change]]:
    """For each place that can be changed, the changes of it."""
    seen: Counter[tuple[str, str]] = Counter()
    found = list[Sequence[Change]]()
    for site in _Reader(path, source).walk(ast.parse(source), ""):
        mark = site[0].scope, site[0].before
        found.append([replace(change, nth=seen[mark]) for change in site])
        seen[mark] += 1
    return found


class _Reader:
    def __init__(self, path: str, source: bytes) -> None:
        self.path = path
        self.source = source
        self.function = ""
        self.lines = [0, *accumulate(map(len, source.splitlines(keepends=True)))]

    def walk(self, node: ast.AST, scope: str) -> Iterator[Sequence[Change]]:
        if _is_left_out(node):
            return
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            scope = f"{scope}.{node.name}".lstrip(".")
            self.function = "" if isinstance(node, ast.ClassDef) else node.name
        if found := list(self.changes(node, scope)):
            yield found
        for test in _conditions(node):
            if found := [self.change(test, way, scope) for way in self.ways(test)]:
                yield found
        inside = self.function
        for name, value in ast.iter_fields(node):
            if name not in ("annotation", "returns", "type_params"):
                for child in value if isinstance(value, list) else [value]:
                    if isinstance(child, ast.AST):
                        yield from self.walk(child, scope)
                        self.function = inside

    def changes(self, node: ast.AST, scope: str) -> Iterator[Change]:
        match node:
            case ast.Compare():
                yield from self.of_comparison(node, scope)
            case ast.Constant(value=int() | float() as number) if not isinstance(number, bool):
                for other in _others(number):
                    yield self.change(node, repr(other), scope)
            case ast.BoolOp():
                for part in node.values:
                    yield self.change(node, f"({self.text(part)})", scope)
            case ast.UnaryOp(op=ast.Not()):
                yield self.change(node, f"bool({self.text(node.operand)})", scope)

    def of_comparison(self, node: ast.Compare, scope: str) -> Iterator[Change]:
        places = zip((node.left, *node.comparators), node.comparators, node.ops, strict=False)
        for left, right, op in places:
            said, other = OPPOSITE[type(op)]
            start, end = self.span(left)[1], self.span(right)[0]
            sign = re.search(rb"(?<![\w<>=!])%s(?![\w=])" % said.encode(), self.source[start:end])
            assert sign is not None, (self.path, node.lineno)
            yield self.change((start + sign.start(), start + sign.end()), other, scope)

    def ways(self, test: ast.expr) -> tuple[str, ...]:
        return () if isinstance(test, ast.Constant) else (f"(not ({self.text(test)}))", "True", "False")

    def change(self, place: ast.AST | tuple[int, int], text: str, scope: str) -> Change:
        """Shown with the whole lines around it."""
        start, end = place if isinstance(place, tuple) else self.span(place)
        begin = self.source.rfind(b"\n", 0, start) + 1
        close = self.source.find(b"\n", end)
        before, after = (
            " ".join((self.source[begin:start] + middle + self.source[end:close]).decode().split())
            for middle in (self.source[start:end], text.encode())
        )
        line = self.source.count(b"\n", 0, start) + 1
        return Change(self.path, scope or "-", self.function, 0, line, start, end, text, before, after)

    def span(self, node: ast.AST) -> tuple[int, int]:
        assert isinstance(node, ast.expr)
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        start = self.lines[node.lineno - 1] + node.col_offset
        return start, self.lines[node.end_lineno - 1] + node.end_col_offset

    def text(self, node: ast.AST) -> str:
        start, end = self.span(node)
        return self.source[start:end].decode()


def _conditions(node: ast.AST) -> Sequence[ast.expr]:
    match node:
        case ast.If() | ast.While() | ast.IfExp():
            return [node.test]
        case ast.comprehension():
            return node.ifs
        case ast.match_case(guard=ast.expr() as guard):
            return [guard]
    return []


def _is_left_out(node: ast.AST) -> bool:
    """What is only for the type checker, what starts a program, and what has no place."""
    if isinstance(node, ast.If):
        return any(
            isinstance(name, ast.Name) and name.id in ("TYPE_CHECKING", "__name__")
            for name in ast.walk(node.test)
        ) or "sys.version_info" in ast.unparse(node.test)
    if isinstance(node, ast.Assign):
        return any(isinstance(name, ast.Name) and name.id == "__slots__" for name in node.targets)
    return isinstance(node, ast.JoinedStr)


def _others(number: int | float) -> tuple[int | float, ...]:
    if number == 0 or (isinstance(number, int) and abs(number) < SMALL):
        return (number + 1,)
    return number * 2, number // 2 if isinstance(number, int) else number / 2
