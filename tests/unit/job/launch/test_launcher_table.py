"""A launcher is one file and one row: no other file names it."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import doctor
from doctor.job.launch import launchers
from doctor.job.launch.launcher import Launcher
from doctor.job.launch.launchers import COMMANDS, LAUNCHERS, MODULES
from doctor.job.launch.launchers.plain import PLAIN
from doctor.job.launch.launchers.srun import SRUN

PACKAGE = Path(doctor.__file__).parent
ROOT = PACKAGE.parent
TABLE = Path(launchers.__file__).parent
REACHES_HOSTS = SRUN.commands
"""It is also a way to reach hosts, and is named wherever that is meant."""
ALL = sorted({*COMMANDS, *MODULES} - {*REACHES_HOSTS})
NAMES = re.compile(rf"(?<![\w-])(?:{'|'.join(map(re.escape, ALL))})(?![\w/-])")
"""A folder of the same name is a package, such as the one whose files a stack names."""


def literals(path: Path) -> Iterator[tuple[int, str]]:
    """The texts in a file that are not documentation, if one of its texts is a name."""
    source = path.read_text()
    if not any(name in source for name in ALL):
        return
    tree = ast.parse(source)
    documented = {
        id(node.value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in documented:
            yield node.lineno, node.value


def test_no_launcher_is_named_outside_its_file() -> None:
    found = {}
    for path in (*PACKAGE.rglob("*.py"), *(ROOT / "checks").rglob("*.py")):
        if TABLE not in path.parents and "_bundled" not in path.parts:
            lines = [line for line, text in literals(path) if NAMES.search(text)]
            if lines:
                found[str(path.relative_to(ROOT))] = lines
    assert found == {}


@pytest.mark.parametrize("launcher", LAUNCHERS, ids=lambda each: each.name)
def test_each_launcher_has_a_file_and_a_row(launcher: Launcher) -> None:
    names = {each.name for each in LAUNCHERS}
    assert len(names) == len(LAUNCHERS)
    row = re.compile(rf'(?:Launcher|launcher_of)\(\s*"{launcher.name}"')
    owners = [p.stem for p in TABLE.glob("*.py") if row.search(p.read_text())]
    assert len(owners) == 1


def test_what_ends_a_job_is_documented() -> None:
    rows = [
        line.split(" | ")
        for line in (ROOT / "docs/in-job.md").read_text().splitlines()
        if line.startswith("| ")
    ]
    for launcher in LAUNCHERS:
        for ranks in launcher.ranks:
            if ranks.identity:
                said = [
                    row
                    for row in rows
                    if f"`{ranks.rank}`" in row[1] and ("anything else" in row[0]) == (launcher is PLAIN)
                ]
                assert [row[3].rstrip(" |") for row in said][:1] == [launcher.ends_job or "never"], (
                    launcher.name
                )
                assert f"`{ranks.master}" in said[0][2]
