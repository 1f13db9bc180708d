"""The sentences that a fault can be told in, by `ast`: those of checks that may fail, and of the code that
they reach. Sentences that only a warning, an open question or a skipped check can have are left out.
"""

import ast
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from tests.support.paths import ROOT
from tests.support.sentences import Sentence, Strings, is_prose

FOLDERS = (
    *("checks", "doctor/rules", "doctor/mesh", "doctor/smoke/judge", "doctor/job/ranktable"),
    *("doctor/job/plan", "doctor/firewall", "doctor/facts", "doctor/transport"),
)
"""Where checks take their sentences from."""
_OPEN = ("Undecided", "Skip", "UnreadableOutput")
_STEPS = ("CannotReach", "Refusal")
"""After the summary they say what to do."""


@dataclass(eq=False)
class _Piece:
    """A function, or a table of a module."""

    where: str
    node: ast.AST

    @cached_property
    def names(self) -> set[str]:
        """What it names."""
        nodes = [*ast.walk(self.node)]
        plain = {each.id for each in nodes if isinstance(each, ast.Name)}
        return plain | {each.attr for each in nodes if isinstance(each, ast.Attribute)}

    @cached_property
    def can_fail(self) -> bool:
        return any(_is_severity(each, "FAIL") for each in ast.walk(self.node))

    @cached_property
    def texts(self) -> list[str]:
        found = _FaultStrings()
        body = getattr(self.node, "body", None)
        for each in body if isinstance(body, list) else [self.node]:
            found.visit(each)
        return [text for text in found.texts if is_prose(text)]


class _FaultStrings(Strings):
    """Strings of a piece, without those of a warning or of an open question."""

    def visit_Call(self, node: ast.Call) -> None:
        called = getattr(node.func, "id", "")
        if called in _STEPS:
            self.generic_visit(ast.Tuple(node.args[:2]))
        elif called not in _OPEN and not any(_is_severity(each.value, "WARN") for each in node.keywords):
            super().visit_Call(node)

    def visit_Yield(self, node: ast.Yield) -> None:
        if not isinstance(node.value, ast.Constant | ast.JoinedStr):  # a text alone is an open question
            self.generic_visit(node)

    def visit_Assign(self, node: ast.Assign) -> None:
        if not any(isinstance(each, ast.Subscript) and _is_doubt(each.value) for each in node.targets):
            super().visit_Assign(node)


def fault_texts() -> list[Sentence]:
    return texts_of([ROOT / folder for folder in FOLDERS])


def texts_of(folders: Iterable[Path]) -> list[Sentence]:
    pieces: dict[str, list[_Piece]] = defaultdict(list)
    checks: list[tuple[_Piece, bool]] = []
    for folder in folders:
        for path in sorted(folder.rglob("*.py")):
            if "onhost" not in path.parts:
                _take(ast.parse(path.read_text()), f"{folder.name}/{path.name}", pieces, checks)
    told: dict[Sentence, None] = {}
    for root, warns in checks:
        reached = _reached(root, pieces)
        if not warns or any(piece.can_fail for piece in reached if piece.where == root.where):
            told.update(dict.fromkeys((piece.where, text) for piece in reached for text in piece.texts))
    return list(told)


def _take(
    tree: ast.Module, where: str, pieces: dict[str, list[_Piece]], checks: list[tuple[_Piece, bool]]
) -> None:
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            piece = _Piece(where, node)
            pieces[node.name].append(piece)
            checks += [
                (piece, any(_is_severity(each.value, "WARN") for each in decorator.keywords))
                for decorator in node.decorator_list
                if isinstance(decorator, ast.Call) and getattr(decorator.func, "id", "") == "check"
            ]
    for node in tree.body:
        targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
        for target in targets:
            if isinstance(target, ast.Name):
                pieces[target.id].append(_Piece(where, node))


def _reached(root: _Piece, pieces: dict[str, list[_Piece]]) -> list[_Piece]:
    """The pieces that this one names, and so on."""
    seen, left = {root: None}, [root]
    while left:
        here = left.pop()
        for name in here.names:
            for piece in pieces.get(name, ()):
                if piece not in seen and (not name.startswith("_") or piece.where == here.where):
                    seen[piece] = None
                    left.append(piece)
    return list(seen)


def _is_doubt(node: ast.expr) -> bool:
    return isinstance(node, ast.Name) and node.id in ("doubts", "doubtful")


def _is_severity(node: ast.AST, name: str) -> bool:
    return isinstance(node, ast.Attribute) and ast.unparse(node) == f"Severity.{name}"
