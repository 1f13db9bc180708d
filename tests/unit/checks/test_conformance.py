"""Every check, exam and remedy follows the rules, whoever wrote it; nothing here counts or lists them."""

import ast
import re
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from doctor import rules
from doctor.api import HERE, Check, Scope
from doctor.expect import FIELDS, Expect
from doctor.job import plan
from doctor.judge.findings import IN_CONTAINER
from doctor.judge.playbook import exams, load_exam, load_remedies, placeholders
from doctor.judge.registry import bundled, find_checks
from tests.support.each import each

FOUND = find_checks()
CHECKS = {check.id: check for check in FOUND.checks}
FILES = sorted(bundled("checks").glob("*.py"))
RECIPES = load_remedies().recipes

each_check = each("check", CHECKS.values())
FOR_CHECKS = ("api", "model", "job", "mesh", "firewall", "facts", "rules", "smoke.judge", "text.hostprogram")
"""What a check file may import: the words of the engine, and pure code that reads or judges."""
each_file = each("file", FILES)


def test_all_files_load_and_no_id_is_claimed_twice() -> None:
    assert FOUND.broken == (), "a file of ours that does not load would have raised"


@each_check
def test_an_id_is_short_and_named_like_its_function(check: Check) -> None:
    assert re.fullmatch(r"[a-z][a-z0-9]*(-[a-z0-9]+)+", check.id)
    assert check.run.__name__ == check.id.replace("-", "_"), "the function is called like its check"


@each_check
def test_the_docstring_is_the_manual(check: Check) -> None:
    title, blank, *rest = check.doc.splitlines()
    assert re.fullmatch(r"\S.{10,98}\.", title)
    assert blank == ""
    sections = [line for line in rest if re.match(r"(Why it matters|What to do): \S", line)]
    assert [section.partition(":")[0] for section in sections] == ["Why it matters", "What to do"]
    assert all(len(line) <= 108 for line in rest)


@each_check
def test_checks_that_compare_hosts_need_no_single_host(check: Check) -> None:
    assert check.scope is Scope.HOST or HERE not in check.needs


@each_check
def test_it_says_what_damage_the_fault_does(check: Check) -> None:
    assert check.damage is not None, "reports are in the order of damage (damage=Damage...)"


@each_check
def test_its_remedy_exists(check: Check) -> None:
    assert check.remedy is None or check.remedy in RECIPES


@each_check
def test_causes_are_checks_and_form_no_circle(check: Check) -> None:
    ahead, seen = list(check.causes), set[str]()
    while ahead:
        id = ahead.pop()
        assert id in CHECKS, f"{id} is not a check"
        assert id != check.id, "it would explain itself"
        if id not in seen:
            seen.add(id)
            ahead += CHECKS[id].causes


@each_file
def test_checks_import_only_what_is_meant_for_them(file: Path) -> None:
    for node in ast.walk(ast.parse(file.read_text())):
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
        for name in names:
            ours = name.startswith(tuple(f"doctor.{unit}" for unit in FOR_CHECKS))
            assert ours or name.partition(".")[0] in sys.stdlib_module_names, f"{file.name} imports {name}"


@each_file
def test_checks_are_pure(file: Path) -> None:
    """They must not read the time, the files or the environment of the machine that judges."""
    used = {node.id for node in ast.walk(ast.parse(file.read_text())) if isinstance(node, ast.Name)}
    assert not used & {"open", "os", "time", "socket", "subprocess", "random", "print", "input", "Path"}


@cache
def texts(file: Path) -> re.Pattern[str]:
    """Patterns for the strings of a file; the holes of an f-string match anything."""
    return re.compile("|".join(_texts(file)))


def _texts(file: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield re.escape(node.value)
        elif isinstance(node, ast.JoinedStr):
            parts = (
                re.escape(str(p.value)) if isinstance(p, ast.Constant) else "[a-z-]+" for p in node.values
            )
            yield "".join(parts)


def users(remedy: str) -> list[Path]:
    return [file for file in FILES if texts(file).fullmatch(remedy)]


def texts_of_rules(file: Path) -> list[str]:
    """The modules of rules that a check imports: they may make its problems."""
    names = re.findall(r"^from doctor\.rules\.(\w+) import", file.read_text(), re.MULTILINE)
    return [(Path(rules.__file__).parent / f"{name}.py").read_text() for name in names]


@each("name", RECIPES)
def test_every_remedy_is_used_and_its_holes_can_be_filled(name: str) -> None:
    files = users(name.removesuffix(IN_CONTAINER))
    assert files, "no check names it"
    sources = "".join(text for file in files for text in [file.read_text(), *texts_of_rules(file)])
    for command in RECIPES[name].commands:
        for hole in placeholders(command):
            filled = hole == "hosts" or f'"{hole}":' in sources  # every finding must have culprits
            assert filled, f"nobody fills {{{hole}}}"


@each("name", RECIPES)
def test_remedies_are_written_to_be_copied(name: str) -> None:
    recipe = RECIPES[name]
    assert re.fullmatch(r"[a-z][a-z0-9-]+", name)
    assert recipe.commands
    assert re.fullmatch(r"[A-Z].{5,70}[^.]", recipe.title)
    assert all(command == command.strip() and "\n" not in command for command in recipe.commands)


@each("name", exams())
def test_every_exam_loads(name: str) -> None:
    exam = load_exam(name, FOUND.checks)
    assert exam.title
    named = {glob for glob in exam.essential if glob != "smoke-*"}
    assert named <= CHECKS.keys(), "essential checks are named in full"


def test_every_expectation_is_used() -> None:
    shared = [path for of in (plan, rules) for path in Path(str(of.__file__)).parent.glob("*.py")]
    sources = "".join(file.read_text() for file in [*FILES, *shared])
    unused = [name for name in FIELDS if f"expect.{name}" not in sources and f'"{name}"' not in sources]
    assert unused == []
    assert all(isinstance(getattr(Expect(), name), int | float | str) for name in FIELDS)
