"""What a report says to type can be typed: its programs are there, doctor takes its own commands, and none
only reads again what was read.
"""

import ast
import contextlib
import io
import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from doctor import cli
from doctor.exam.demo import ALL_DEMOS
from doctor.judge.playbook import load_remedies, placeholders
from doctor.text.yamlfile import plain, read_yaml
from tests.support.cases import cases
from tests.support.each import each
from tests.support.paths import ROOT
from tests.support.printed import (
    OF_A_FAMILY,
    OF_A_VENDOR,
    VENDORS,
    assert_typable,
    only_reads,
    parts,
    refused,
    seen_again,
    typed_in,
)
from tests.support.tampered import SAMPLES

SOURCES = [
    path
    for path in [*ROOT.glob("checks/*.py"), *ROOT.glob("doctor/**/*.py")]
    if "launchers" not in path.parts and "commands=" in path.read_text()
]
SYMPTOMS = [path for path in ROOT.glob("playbooks/symptoms/*.yaml") if path.stem != "words"]
RECORDED = sorted([*SAMPLES.glob("*.run.json.gz"), *ROOT.glob("doctor/demos/*.run.json.gz")])
SCREENS = sorted(ROOT.glob("tests/golden/**/*.200.txt"))


@cases
def test_the_programs_of_a_line(line: str, found: list[str], reads: bool) -> None:
    assert [words[0] for words in parts(line)] == found
    assert only_reads(line) is reads


@cases
def test_what_only_reads_again(typed: str, source: str, again: bool) -> None:
    remedy = {"id": "x", "commands": [typed]}
    assert bool(seen_again({"remedy": remedy, "evidence": [{"source": source, "text": ""}]})) is again


@each("name", load_remedies().recipes)
def test_a_remedy(name: str) -> None:
    playbook = load_remedies()
    commands = playbook.recipes[name].on(tuple(OF_A_VENDOR))
    holes = {hole: "value" for command in commands for hole in placeholders(command)}
    filled = playbook.fill(name, holes, tuple(OF_A_VENDOR))
    assert filled is not None
    assert refused(filled.commands) == []


@each("path", SYMPTOMS)
def test_what_symptoms_say(path: Path) -> None:
    said = [line for symptom in plain(read_yaml(path).root).values() for line in symptom.get("remedy", ())]
    family = OF_A_FAMILY.get(path.name, "").split()
    assert refused([re.sub(r"\{\w+\}", "value", line) for line in said], [*VENDORS, *family]) == []


def commands_in(source: Path) -> Iterator[str]:
    """The commands that a module writes itself, with a word in place of each value."""
    for node in ast.walk(ast.parse(source.read_text())):
        if isinstance(node, ast.keyword) and node.arg == "commands" and isinstance(node.value, ast.Tuple):
            for one in node.value.elts:
                of = one.values if isinstance(one, ast.JoinedStr) else [one]
                yield "".join(str(part.value) if isinstance(part, ast.Constant) else "value" for part in of)


@each("source", SOURCES)
def test_what_a_module_writes(source: Path) -> None:
    assert refused([*commands_in(source)]) == []


@each("screen", SCREENS)
def test_what_a_screen_shows(screen: Path) -> None:
    assert_typable(screen.read_text())


def test_screens_show_commands() -> None:
    assert sum(len(typed_in(screen.read_text())) for screen in SCREENS) > 50


def test_demos() -> None:
    for name in ALL_DEMOS:
        with contextlib.redirect_stdout(io.StringIO()) as shown:
            cli.run(["demo", name])
        assert_typable(shown.getvalue())


@pytest.mark.slow
@each("recorded", RECORDED)
def test_what_a_report_says(recorded: Path, tmp_path: Path) -> None:
    """Also what verifies; and nothing that was read is a next step."""
    report = tmp_path / "report.json"
    cli.run(["check", "--replay", str(recorded), "-q", "--json", str(report)])
    found = json.loads(report.read_bytes())["findings"]
    typed = [line for each in found for line in (each["remedy"] or {"commands": ()})["commands"]]
    assert refused([*typed, *(each["verify"] for each in found if each["verify"])]) == []
    assert {each["check"]: again for each in found if (again := seen_again(each))} == {}
