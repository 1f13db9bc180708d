"""What a report says to type can be typed: its programs are there, doctor takes its own commands, and none
only reads again what was read.
"""

import ast
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from doctor import cli
from doctor.judge.playbook import load_remedies, placeholders
from doctor.slow.advice import advice
from doctor.text.yamlfile import plain, read_yaml
from tests.support.cases import cases
from tests.support.each import each
from tests.support.paths import ROOT
from tests.support.printed import OF_A_FAMILY, OF_A_VENDOR, misread, missing, only_reads, parts, seen_again
from tests.support.tampered import SAMPLES

EVERY_VENDOR = " ".join(OF_A_VENDOR.values()).split()
SOURCES = [*ROOT.glob("checks/*.py"), *ROOT.glob("doctor/[hrs]*/**/*.py")]
RECORDED = sorted([*SAMPLES.glob("*.run.json.gz"), *ROOT.glob("doctor/demos/*.run.json.gz")])


def commands_in(source: Path) -> Iterator[str]:
    """The commands that a module writes itself, with a word in place of each value."""
    for node in ast.walk(ast.parse(source.read_text())):
        if isinstance(node, ast.keyword) and node.arg == "commands" and isinstance(node.value, ast.Tuple):
            for one in node.value.elts:
                if isinstance(one, ast.Constant):
                    yield str(one.value)
                elif isinstance(one, ast.JoinedStr):
                    held = [str(part.value) if isinstance(part, ast.Constant) else "value" for part in one.values]
                    yield "".join(held)


@cases
def test_the_programs_of_a_line(line: str, found: list[str], reads: bool) -> None:
    assert [words[0] for words in parts(line)] == found
    assert only_reads(line) is reads


def refused(line: str, also: list[str]) -> list[str]:
    wrong = [f"{name} need not be there: {line}" for name in missing(line, also)]
    own = [words for words in parts(line) if words[0] == "doctor"]
    return wrong + [f"{why}: {line}" for _ in own if (why := misread(line))]


@each("name", load_remedies().recipes)
def test_a_remedy_can_be_typed(name: str) -> None:
    playbook = load_remedies()
    recipe = playbook.recipes[name]
    holes = {hole: "7" for command in recipe.on(tuple(OF_A_VENDOR)) for hole in placeholders(command)}
    filled = playbook.fill(name, holes, tuple(OF_A_VENDOR))
    assert filled is not None
    assert [why for line in filled.commands for why in refused(line, EVERY_VENDOR)] == []


@each("source", SOURCES)
def test_what_a_module_writes_can_be_typed(source: Path) -> None:
    assert [why for line in commands_in(source) for why in refused(line, EVERY_VENDOR)] == []


@each("recorded", RECORDED)
def test_nothing_is_read_twice(recorded: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    json_file = tmp_path_factory.mktemp("report") / "report.json"
    cli.run(["check", "--replay", str(recorded), "-q", "--json", str(json_file)])
    findings = json.loads(json_file.read_bytes())["findings"]
    assert {found["check"]: again for found in findings if (again := seen_again(found))} == {}
