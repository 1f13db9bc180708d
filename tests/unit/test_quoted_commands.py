"""No command that is shown to a user contains a node set that a shell would take for a file name pattern."""

import ast
import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import typer

from doctor.cli import app
from doctor.judge.playbook import load_remedies, placeholders
from doctor.judge.registry import find_checks
from tests.support.cases import cases
from tests.support.each import each
from tests.support.paths import ROOT
from tests.support.patterns import bare_brackets
from tests.support.reports import reports, text

PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("examples/**/*.md")])
SCRIPTS = [path for kind in ("sh", "sbatch") for path in sorted(ROOT.glob(f"examples/**/*.{kind}"))]
SHELL = re.compile(r"^```(?:sh|bash|console)\n(.*?)^```", re.MULTILINE | re.DOTALL)
BEGUN = re.compile(r"\b(?:doctor (?:check|smoke|preflight|ranktable)|ssh|srun|pdsh|clush)\b[^:;,.()]*$")
INLINE = re.compile(r"`([^`\n]+)`")
COMMAND = re.compile(r"\b(?:doctor (?:check|smoke|preflight|ranktable)|ssh|srun|pdsh|clush)(?= ).*")
A_SET = re.compile(r"(?<![\w'.@-])[\w.@-]*\w\[\d[\d,-]*\](?!')")
SOURCES = sorted([*ROOT.glob("doctor/**/*.py"), *ROOT.glob("checks/*.py")])


def commands_of(page: Path) -> Iterator[str]:
    written = page.read_text()
    shown = (
        [written]
        if page.suffix != ".md"
        else [*SHELL.findall(written), *INLINE.findall(SHELL.sub("", written))]
    )
    for line in "\n".join(shown).splitlines():
        yield from COMMAND.findall(line)


@cases
def test_what_a_shell_takes_for_a_pattern(line: str, found: list[str]) -> None:
    assert bare_brackets(line) == found


@each("page", [*PAGES, *SCRIPTS])
def test_in_the_docs(page: Path) -> None:
    assert [line for line in commands_of(page) if bare_brackets(line)] == []


def test_the_docs_are_searched() -> None:
    """Many of their commands contain a node set, in quotes."""
    found = [line for page in PAGES for line in commands_of(page) if "'node[" in line]
    assert len(found) >= 15
    assert all(bare_brackets(line.replace("'", "")) for line in found)


def every_help() -> Iterator[str]:
    whole = typer.main.get_command(app)
    groups = [(whole, "doctor")]
    while groups:
        command, name = groups.pop()
        context = typer.Context(command, info_name=name)
        yield command.get_help(context)
        groups += [(each, f"{name} {sub}") for sub, each in getattr(command, "commands", {}).items()]


def test_in_the_help() -> None:
    helps = list(every_help())
    assert len(helps) >= 8
    assert any("'n[01-16,20]'" in page for page in helps)
    assert [found for page in helps for found in A_SET.findall(page)] == []


def test_in_the_manual_of_a_check() -> None:
    for check in find_checks().checks:
        typed = [command for inline in INLINE.findall(check.doc) for command in COMMAND.findall(inline)]
        assert [line for line in typed if bare_brackets(line)] == [], check.id


def test_in_the_remedies() -> None:
    """With a node set in every placeholder."""
    playbook = load_remedies()
    for name, recipe in playbook.recipes.items():
        for command in recipe.commands:
            holes = dict.fromkeys(placeholders(command), "node[1-4]")
            filled = playbook.fill(name, holes)
            for line in filled.commands if filled else ():
                assert bare_brackets(line) == [], name


@pytest.mark.parametrize("name", reports())
def test_in_a_report(name: str) -> None:
    made = reports()[name]
    typed = [line for found in made.findings if found.remedy for line in found.remedy.commands]
    typed += [found[0] for line in text(made, 300).splitlines() if (found := COMMAND.search(line))]
    assert [line for line in typed if bare_brackets(line)] == []


def test_in_old_reports() -> None:
    for path in (ROOT / "tests" / "samples" / "recordings").glob("*.txt"):
        for line in path.read_text().splitlines():
            assert not [found for found in COMMAND.findall(line) if bare_brackets(found)], path.name


def unquoted_folds(source: str) -> list[str]:
    """f-strings that begin a command and contain `fold(...)` without quotes."""
    found: list[str] = []
    if not re.search(r"\bfold\(|\.nodeset\b", source):
        return found
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.JoinedStr):
            before = ""
            for part in node.values:
                if isinstance(part, ast.FormattedValue) and _is_bare(part.value) and BEGUN.search(before):
                    found.append(ast.unparse(part.value))
                before += str(part.value) if isinstance(part, ast.Constant) else "_"
    return found


def _is_bare(value: ast.expr) -> bool:
    called = value.func.id if isinstance(value, ast.Call) and isinstance(value.func, ast.Name) else ""
    return called == "fold" or (isinstance(value, ast.Attribute) and value.attr == "nodeset")


@each("source", SOURCES)
def test_where_a_command_is_built(source: Path) -> None:
    assert unquoted_folds(source.read_text()) == []


@cases
def test_a_command_that_is_built_without_quotes_is_seen(source: str, found: list[str]) -> None:
    assert unquoted_folds(source) == found


def test_the_json_of_a_report_is_searched_as_well() -> None:
    golden = json.loads((ROOT / "tests/golden/sick-hosts.1.json").read_text())
    typed = [
        line for found in golden["findings"] for line in (found["remedy"] or {"commands": []})["commands"]
    ]
    assert typed
    assert [line for line in typed if bare_brackets(line)] == []
