"""What only one of the supported Pythons gets wrong is not in the sources: any Python can see it here."""

import ast
from collections.abc import Iterator
from pathlib import Path

from tests.support.cases import cases
from tests.support.each import each
from tests.support.paths import ROOT

SOURCES = sorted(path for top in ("doctor", "checks") for path in ROOT.glob(f"{top}/**/*.py"))
INLINED = (ast.ListComp, ast.SetComp, ast.DictComp)
SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.GeneratorExp)
GENERIC = {"Iterator", "Mapping", "Sequence", "dict", "frozenset", "list", "set", "tuple"}
"""Those of data: get_type_hints() of Python 3.10 does not look into them."""


def hidden_names(tree: ast.AST) -> list[str]:
    """Names of others that a comprehension reads, and another of the same function gives to its variable.

    Python 3.12.0 and 3.12.1 run both inside the function, and take the name for the function's own variable,
    which has no value: UnboundLocalError.
    """
    found = []
    for function in ast.walk(tree):
        if isinstance(function, SCOPES[:3]):
            body = function.body if isinstance(function.body, list) else [function.body]
            inside = [node for part in body for node in own_nodes(part)]
            variables = {name for node in inside if isinstance(node, INLINED) for name in targets(node)}
            local = {argument.arg for argument in ast.walk(function.args) if isinstance(argument, ast.arg)}
            read: set[str] = set()
            for part in body:
                uses(part, frozenset(), local, read)
            found += sorted((variables & read) - local)
    return found


def own_nodes(node: ast.AST) -> Iterator[ast.AST]:
    """The nodes of one scope: what stands in a function within it is not its own."""
    yield node
    if not isinstance(node, (*SCOPES, ast.ClassDef)):
        for child in ast.iter_child_nodes(node):
            yield from own_nodes(child)


def targets(node: ast.ListComp | ast.SetComp | ast.DictComp) -> set[str]:
    return {
        name.id for part in node.generators for name in ast.walk(part.target) if isinstance(name, ast.Name)
    }


def uses(node: ast.AST, bound: frozenset[str], local: set[str], read: set[str]) -> None:
    """Adds what its comprehensions read of others to `read`, and what it assigns itself to `local`."""
    if isinstance(node, INLINED):
        first, *_ = node.generators
        uses(first.iter, bound, local, read)
        bound |= targets(node)
        for child in ast.iter_child_nodes(node):
            uses(child, bound, local, read)
        return
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        local.add(node.name)
    if isinstance(node, (*SCOPES, ast.ClassDef)):
        return
    if isinstance(node, ast.Name) and node.id not in bound:
        if not isinstance(node.ctx, ast.Load):
            local.add(node.id)
        elif bound:
            read.add(node.id)
    elif isinstance(node, ast.NamedExpr):
        local.add(node.target.id)
    elif isinstance(node, ast.ExceptHandler) and node.name:
        local.add(node.name)
    elif isinstance(node, ast.alias):
        local.add((node.asname or node.name).partition(".")[0])
    elif isinstance(node, (ast.MatchAs, ast.MatchStar)) and node.name:
        local.add(node.name)
    for child in ast.iter_child_nodes(node):
        uses(child, bound, local, read)


def quoted_types(tree: ast.AST) -> list[str]:
    """Types in quotes within a generic one."""
    return [
        ast.unparse(node)
        for node in ast.walk(tree)
        if isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name) and node.value.id in GENERIC
        for part in (node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice])
        if isinstance(part, ast.Constant) and isinstance(part.value, str)
    ]


@each("path", SOURCES)
def test_no_source_has_any_of_them(path: Path) -> None:
    tree = ast.parse(path.read_text())
    assert hidden_names(tree) == []
    if path.is_relative_to(ROOT / "doctor"):  # checks have nothing that is read from JSON
        assert quoted_types(tree) == []


@cases
def test_a_hidden_name_is_seen(source: str, found: list[str]) -> None:
    assert hidden_names(ast.parse(source)) == found


@cases
def test_a_quoted_type_is_seen(source: str, found: list[str]) -> None:
    assert quoted_types(ast.parse(source)) == found
