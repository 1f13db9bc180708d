"""docs/what-is-read.md lists every place that reads foreign text; nothing else reads any. Its tests exist."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from tests.support.cases import cases, from_cases
from tests.support.paths import ROOT

LIST = ROOT / "docs" / "what-is-read.md"
PROMISES = ROOT / "docs" / "proof" / "security.md"
FUNCTIONS = {"open", "fdopen"}
METHODS = from_cases(__file__, "METHODS", set[str])
MODULES = from_cases(__file__, "MODULES", dict[str, set[str]])
SCRIPT = "Script"
"""Code that runs on a host: a shell there reads for us."""
NAMES = re.compile(rf"\b(?:{'|'.join({*FUNCTIONS, *METHODS, *set().union(*MODULES.values()), SCRIPT})})\b")


def test_each_place_that_reads_is_in_the_list() -> None:
    listed, unlisted = places_listed(), {}
    for path in sources():
        text = path.read_text()
        for where, calls in places(ast.parse(text)).items() if NAMES.search(text) else ():
            if where not in listed.get(name := str(path.relative_to(ROOT)), ()):
                unlisted[f"{name}: {where}"] = calls
    assert not unlisted, f"docs/what-is-read.md lacks {unlisted}"


def test_each_place_in_the_list_reads() -> None:
    stale = []
    for name, wheres in places_listed().items():
        path = ROOT / name
        found = places(ast.parse(path.read_text())) if path.is_file() else {}
        stale += [f"{name}: {where}" for where in sorted(wheres - found.keys())]
    assert not stale, "docs/what-is-read.md lists what reads nothing (any more)"


def test_each_row_says_as_whom_by_which_name_and_within_which_bound() -> None:
    for cells in rows():
        assert len(cells) == 5, cells
        assert all(cells), cells


def test_each_promise_names_a_test_that_there_is() -> None:
    for *_, cell in rows(PROMISES):
        files = [ROOT / name for name in re.findall(r"`(tests/\S+\.py)`", cell)]
        assert files, cell
        text = "".join(path.read_text() for path in files)
        for name in re.findall(r"`(test_\w+)`", cell):
            assert f"def {name}(" in text, name


@cases
def test_what_reads_is_recognised(text: str, found: dict[str, list[str]]) -> None:
    assert places(ast.parse(text)) == found


def sources() -> list[Path]:
    return sorted([*ROOT.glob("doctor/**/*.py"), *ROOT.glob("checks/**/*.py")])


def rows(page: Path = LIST) -> list[list[str]]:
    lines = [line for line in page.read_text().splitlines() if line.startswith("|")][2:]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def places_listed() -> dict[str, set[str]]:
    """The entries `doctor/x.py: Class.method, function` in the first cells: file -> its places."""
    found: dict[str, set[str]] = {}
    for cells in rows():
        for each in re.findall(r"`([^`]+)`", cells[0]):
            file, _, names = each.partition(": ")
            found.setdefault(file, set()).update(names.split(", "))
    return found


def places(tree: ast.Module) -> dict[str, list[str]]:
    """Functions, with their class, and the calls in them that read."""
    found: dict[str, list[str]] = {}
    for where, call in calls_in(tree, ()):
        if reads(call):
            found.setdefault(".".join(where) or "the module", []).append(ast.unparse(call.func))
    return found


def calls_in(node: ast.AST, where: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], ast.Call]]:
    inside_function = False
    for child in ast.iter_child_nodes(node):
        inside = where
        if isinstance(child, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            inside_function = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
            inside = where if inside_function else (*where, child.name)
        if isinstance(child, ast.Call):
            yield inside, child
        yield from calls_in(child, inside)


def reads(call: ast.Call) -> bool:
    function = call.func
    if isinstance(function, ast.Name):
        return (function.id in FUNCTIONS and not writes(call, 1)) or function.id == SCRIPT
    if not isinstance(function, ast.Attribute):
        return False
    module = function.value.id if isinstance(function.value, ast.Name) else ""
    if module in MODULES:
        return function.attr in MODULES[module] | METHODS and not writes(call, 1)
    if function.attr == "open":  # of a path; a method of that name with several arguments is something else
        return len(call.args) == 0 or (is_mode(call.args[0]) and not writes(call, 0))
    return function.attr in METHODS


def is_mode(given: ast.expr) -> bool:
    return (
        isinstance(given, ast.Constant)
        and isinstance(given.value, str)
        and set(given.value) <= set("rwaxbt+")
    )


def writes(call: ast.Call, at: int) -> bool:
    """Whether a mode only writes."""
    given = [*call.args[at : at + 1], *(k.value for k in call.keywords if k.arg == "mode")]
    modes = [each.value for each in given if isinstance(each, ast.Constant) and isinstance(each.value, str)]
    return any(set(mode) & set("wax") and "+" not in mode for mode in modes)


if __name__ == "__main__":
    for path in sources():
        for where, calls in places(ast.parse(path.read_text())).items():
            print(f"{path.relative_to(ROOT)}: {where}", *calls)
