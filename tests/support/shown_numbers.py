"""The numbers that a finding shows, and the lines of code that write numbers into its texts."""

from __future__ import annotations

import ast
import inspect
import re
import sys
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from functools import cache
from pathlib import Path
from types import FrameType
from typing import Any

from doctor.api import Undecided
from doctor.model import Problem
from tests.support.paths import ROOT

Row = Callable[..., tuple[tuple[Any, ...], str]]
"""From numbers, whose defaults make a faulty case, to the facts of the check and to the numbers that its
findings show, in their order. One that no input changes is marked by !; with … the evidence, which quotes the
input, does not count.
"""
Values = Mapping[str, float]

# What a finding shows

_NODESET = re.compile(r"[\w.-]*[A-Za-z_][\w.-]*\[[\d,-]+\]")
_AROUND = re.compile(r"[\s()\[\],;|='\"×·+<>#]+")
_NUMBER = re.compile(r"/?(-?\d+(?:\.\d+)?)(?:m|kB|MB|KB|s|h|%)?")
_RANGE = re.compile(r"(\d+)-(\d+)")


def shown_by(problems: Iterable[Problem], quotes: bool = True) -> list[str]:
    """The numbers in all texts; names, addresses, versions and paths count as one word each."""
    return [number for problem in problems for text in _texts(problem, quotes) for number in _numbers(text)]


def _texts(problem: Problem, quotes: bool = True) -> Iterator[str]:
    yield from (problem.summary, problem.expected, problem.actual, problem.subject or "")
    for evidence in problem.evidence if quotes else ():
        yield from (evidence.source, evidence.text)
    for value in problem.values.values():
        yield from map(str, value if isinstance(value, tuple) else (value,))
    yield from problem.commands


def _numbers(text: str) -> Iterator[str]:
    for word in _AROUND.split(_NODESET.sub("names", text)):
        plain = word.rstrip(".:?/").removeprefix("-" if word.startswith("--") else "")
        if match := _NUMBER.fullmatch(plain):
            yield match[1]
        elif match := _RANGE.fullmatch(plain):
            yield from match.groups()


def variants(row: Row) -> Iterator[Values]:
    """The row's own numbers, and each of them halved and doubled in turn."""
    own = {name: each.default for name, each in inspect.signature(row).parameters.items()}
    yield own
    for name, value in own.items():
        half = value / 2 if isinstance(value, float) else value // 2
        yield own | {name: half}
        yield own | {name: 2 * value}


def problems_of(run: Callable[..., Iterator[Problem]], facts: tuple[Any, ...]) -> list[Problem]:
    """The problems, also if the rest is an open question."""
    found: list[Problem] = []
    with suppress(Undecided):
        found.extend(run(*facts))
    return found


def assert_true(row: Row, run: Callable[..., Iterator[Problem]]) -> None:
    """The findings show the numbers that the row states, and every input changes some of them."""
    told = [_words_of(row, run, values) for values in variants(row)]
    for halved, doubled in zip(told[1::2], told[2::2], strict=True):
        assert told[0] != halved != doubled != told[0], "an input that changes nothing"
    for position, word in enumerate(told[0]):
        alike = {words[position] for words in told if len(words) == len(told[0])}
        moved = {words[position] for words in told if position < len(words)}
        constant = word == "0" or word.endswith("!")
        assert len(alike) == 1 if constant else len(moved) > 1, f"{word} among {moved}"


def _words_of(row: Row, run: Callable[..., Iterator[Problem]], values: Values) -> list[str]:
    facts, stated = row(**values)
    words = stated.removesuffix("…").split()
    shown = shown_by(problems_of(run, facts), quotes=not stated.endswith("…"))
    assert shown == [word.removesuffix("!") for word in words], values
    assert shown, f"no number for {values}"
    return words


# Lines that were reached


class Reached:
    """The lines of these files that run inside of the `with`."""

    def __init__(self, paths: Iterable[Path]) -> None:
        self._names = {str(path): path.name for path in paths}
        self.lines: set[tuple[str, int]] = set()

    def __enter__(self) -> Reached:
        self._before = sys.gettrace()
        sys.settrace(self._call)
        return self

    def __exit__(self, *_: object) -> None:
        sys.settrace(self._before)

    def _call(self, frame: FrameType, _event: str, _value: object) -> Any:
        return self._line if frame.f_code.co_filename in self._names else None

    def _line(self, frame: FrameType, _event: str, _value: object) -> Any:
        self.lines.add((self._names[frame.f_code.co_filename], frame.f_lineno))
        return self._line


# Lines that write a number

_COUNT = ("len", "sum", "round", "abs")
_ARITHMETIC = (ast.Sub, ast.Mult, ast.Div, ast.FloorDiv)
_TYPE = re.compile(r"(?:int|float)(?: \| None)?")
_CALLED_SO = {"count", "votes", "total", "fewest", "most", "more", "times"}
Scope = Mapping[str, ast.expr | None]


@cache
def _fields() -> frozenset[str]:
    """Names that only numbers have, among the fields and properties of what checks are given."""
    kinds: dict[str, set[bool]] = defaultdict(set)
    folders = ("checks", "doctor/facts", "doctor/mesh", "doctor/job", "doctor/rules")
    paths = (path for folder in folders for path in (ROOT / folder).rglob("*.py"))
    for path in (*paths, ROOT / "doctor/expect.py", ROOT / "doctor/model.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            for each in node.body if isinstance(node, ast.ClassDef) else ():
                if isinstance(each, ast.AnnAssign) and isinstance(each.target, ast.Name):
                    kinds[each.target.id].add(_is_type(each.annotation))
                elif isinstance(each, ast.FunctionDef):
                    kinds[each.name].add(_is_type(each.returns))
    return frozenset(name for name, found in kinds.items() if found == {True})


def _is_type(annotation: ast.expr | None) -> bool:
    return annotation is not None and _TYPE.fullmatch(ast.unparse(annotation)) is not None


def writes_number(node: ast.expr | None, scope: Scope, depth: int = 0) -> bool:
    """Whether this expression is a number for certain."""

    def again(*nodes: ast.expr | None) -> bool:
        return depth < 8 and any(writes_number(each, scope, depth + 1) for each in nodes)

    match node:
        case ast.Constant(value=int() | float() as value):
            return not isinstance(value, bool)
        case ast.Call(func=ast.Name(id=name), args=args):
            return name in _COUNT or (name in ("min", "max") and again(*args))
        case ast.BinOp(left=left, op=op, right=right):
            is_text = isinstance(left, ast.Constant | ast.JoinedStr) and not again(left)
            return not is_text and (isinstance(op, _ARITHMETIC) or again(left, right))
        case ast.Attribute(attr=name):
            return name in _fields()
        case ast.Name(id=name):
            return again(scope[name]) if scope.get(name) else name in _CALLED_SO
        case ast.IfExp(body=left, orelse=right):
            return again(left, right)
        case ast.BoolOp(values=values):
            return again(*values)
    return False


def _scope(function: ast.FunctionDef) -> Scope:
    """Names of a function: to what they are set, or a number for a parameter that is one."""
    scope: dict[str, ast.expr | None] = {}
    for node in ast.walk(function):
        match node:
            case ast.arg(arg=name, annotation=annotation):
                scope[name] = ast.Constant(0) if _is_type(annotation) else None
            case (
                ast.Assign(targets=[ast.Name(id=name)], value=value)
                | ast.NamedExpr(target=ast.Name(id=name), value=value)
            ):
                scope[name] = value
            case ast.Assign(targets=[ast.Tuple(elts=names)], value=ast.Tuple(elts=values)):
                pairs = zip(names, values, strict=False)
                scope |= {name.id: value for name, value in pairs if isinstance(name, ast.Name)}
    return scope


def number_lines(paths: Iterable[Path]) -> Mapping[tuple[str, int], str]:
    """File and line -> what is written there; texts of open questions are left out."""
    found: dict[tuple[str, int], str] = {}
    for path in paths:
        for function in ast.walk(ast.parse(path.read_text())):
            if isinstance(function, ast.FunctionDef):
                found |= {(path.name, line): text for line, text in _written(function)}
    return found


def _written(function: ast.FunctionDef) -> Iterator[tuple[int, str]]:
    scope = _scope(function)
    for node in _said(function):
        match node:
            case ast.FormattedValue(value=value, format_spec=spec):
                exact = spec is not None and re.search(r"[,.]\d|\.\d?[fg]", ast.unparse(spec))
                if exact or writes_number(value, scope):
                    yield value.lineno, ast.unparse(value)
            case ast.Call(func=ast.Name(id="str"), args=[value]) if writes_number(value, scope):
                yield node.lineno, ast.unparse(value)


def _said(node: ast.AST) -> Iterator[ast.AST]:
    for child in ast.iter_child_nodes(node):
        if not (isinstance(child, ast.Raise) or (isinstance(child, ast.Call) and _is_open(child))):
            yield child
            yield from _said(child)


def _is_open(call: ast.Call) -> bool:
    return getattr(call.func, "id", "") in ("Undecided", "Skip")
