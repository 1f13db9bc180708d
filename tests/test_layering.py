"""Which module may import which: nobody looks down, and heavy libraries wait until they are needed."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import doctor

ROOT = Path(doctor.__file__).parent
LAYERS = """
model       errors
expect      terminal
textfile    redact
nodeset     yamlfile    entry
hostfile    hostsettings
ranktable   launch      layout
inventoryfile
inventory
plan
api
transport
probe       mesh        firewall
smoke
facts
registry    recording
engine      findings
givens
playbook    verdict
examination
followup    collect     rehearsal   manual      report      progress
deliver
request     wishes      ways
session
injob
tablecommands
cli
__main__
"""
"""From the ground up: a module imports from the lines above its own, in its line from those to the left."""

ORDER = LAYERS.split()


def modules() -> list[Path]:
    return sorted(path for path in ROOT.rglob("*.py") if "_bundled" not in path.parts)


def imported(path: Path) -> Iterator[tuple[str, int]]:
    """Every import of a file, also those inside functions and for type checkers, with its line."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from ((alias.name, node.lineno) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield from ((f"{node.module}.{alias.name}", node.lineno) for alias in node.names)


def unit(path: Path) -> str:
    """`transport/ssh.py` -> transport."""
    return path.relative_to(ROOT).parts[0].removesuffix(".py")


def test_every_module_has_its_place() -> None:
    assert {unit(path) for path in modules()} - {"__init__"} == set(ORDER)


def test_nobody_looks_down() -> None:
    wrong = []
    for path in modules():
        if unit(path) == "__init__":
            continue
        for name, line in imported(path):
            parts = name.split(".")
            if parts[0] != "doctor" or parts[1] == "__version__":
                continue
            if ORDER.index(parts[1]) > ORDER.index(unit(path)):
                wrong.append(f"{path.relative_to(ROOT)}:{line} imports {parts[1]}")
    assert wrong == []


def test_only_the_ssh_transport_imports_paramiko() -> None:
    users = {p for p in modules() for name, _ in imported(p) if name.split(".")[0] == "paramiko"}
    assert {unit(path) for path in users} == {"transport"}


@pytest.mark.parametrize("folder", ["mesh", "firewall", "facts", "report"])
def test_only_transports_and_their_driver_reach_hosts(folder: str) -> None:
    """What reads, judges or shows has no socket and starts no process; the mesh's agent runs on the hosts."""
    for path in (ROOT / folder).glob("*.py"):
        if path.name != "agent.py":
            used = {name.split(".")[0] for name, _ in imported(path)}
            assert not used & {"socket", "subprocess", "paramiko", "requests", "urllib"}, path


def test_the_ground_stands_alone() -> None:
    standard = sys.stdlib_module_names
    for name in ("model", "errors", "redact"):
        used = {found.split(".")[0] for found, _ in imported(ROOT / f"{name}.py")}
        assert used <= standard, name


def test_what_runs_on_hosts_needs_nothing_but_python() -> None:
    used = {name.split(".")[0] for name, _ in imported(ROOT / "mesh" / "agent.py")}
    assert used <= sys.stdlib_module_names


@pytest.mark.parametrize(
    ("code", "absent"),
    [
        ("import doctor.cli", {"paramiko", "torch", "rich", "yaml", "ClusterShell", "msgspec"}),
        ("from doctor.cli import run; run(['--help'])", {"paramiko", "torch", "ClusterShell", "msgspec"}),
        ("from doctor.cli import run; run(['--version'])", {"paramiko", "torch", "rich", "ClusterShell"}),
        ("from doctor.cli import run; run(['list'])", {"paramiko", "torch", "rich"}),
        ("from doctor.cli import run; run(['check', '--local', '--only', 'shm-*'])", {"paramiko", "torch"}),
        ("import doctor.examination", {"paramiko", "torch", "rich", "typer"}),
    ],
)
def test_heavy_modules_wait_until_they_are_needed(code: str, absent: set[str]) -> None:
    program = f"import sys\n{code}\nsys.stderr.write(' '.join(sys.modules))"
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert not {name.partition(".")[0] for name in ran.stderr.split()} & absent
