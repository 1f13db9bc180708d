"""Which module may import which, by the table of docs/architecture.md."""

import ast
import re
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

import doctor

ROOT = Path(doctor.__file__).parent
PAGE = ROOT.parent / "docs" / "architecture.md"
FREE = {"__init__", "py.typed"}


def table() -> dict[str, list[str]]:
    """The units of doctor/ in their order and, inside some, the order of their modules and folders."""
    _, _, section = PAGE.read_text().partition("## The order of the folders")
    rows = re.findall(r"^\| `(\w+)` \| [^|]+ \|([^|]*)\|$", section, re.MULTILINE)
    return {unit: inside.strip(" `").split() for unit, inside in rows}


TABLE = table()


def modules() -> dict[str, Path]:
    """ "transport.ssh.login" -> its file; a folder is its __init__."""
    paths = (path.relative_to(ROOT) for path in ROOT.rglob("*.py") if "_bundled" not in path.parts)
    named = {".".join(path.with_suffix("").parts).removesuffix(".__init__"): ROOT / path for path in paths}
    return dict(sorted((name, path) for name, path in named.items() if name != "__init__"))


MODULES = modules()


@cache
def imported(path: Path) -> list[tuple[str, int]]:
    """Every import of a file, also those inside functions and for type checkers, with its line."""
    return [*_imports(ast.parse(path.read_text()))]


def _imports(source: ast.Module) -> Iterator[tuple[str, int]]:
    for node in ast.walk(source):
        if isinstance(node, ast.Import):
            yield from ((alias.name, node.lineno) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield from ((f"{node.module}.{alias.name}", node.lineno) for alias in node.names)


def ours(path: Path) -> Iterator[tuple[str, int]]:
    """The modules of doctor/ that a file imports."""
    for name, line in imported(path):
        known = name.removeprefix("doctor.")
        while name.startswith("doctor.") and known:
            if known in MODULES:
                yield known, line
                break
            known = known.rpartition(".")[0]


def children(folder: Path) -> set[str]:
    """The contents of a folder: modules and folders of modules."""
    files = {path.stem for path in folder.glob("*.py")} - FREE
    return files | {path.parent.name for path in folder.glob("*/__init__.py")}


def test_every_unit_has_its_line() -> None:
    assert children(ROOT) == set(TABLE)


@pytest.mark.parametrize("unit", [unit for unit, inside in TABLE.items() if inside])
def test_every_module_of_an_ordered_folder_has_its_place(unit: str) -> None:
    assert children(ROOT / unit) == set(TABLE[unit])
    assert len(TABLE[unit]) == len(set(TABLE[unit]))


@pytest.mark.parametrize("unit", ["smoke", "transport", "facts", "job", "rules", "judge", "report", "exam"])
def test_these_folders_are_ordered(unit: str) -> None:
    assert TABLE[unit]


def test_modules_import_only_from_the_lines_above() -> None:
    order = list(TABLE)
    wrong = []
    for module, path in MODULES.items():
        unit, _, inner = module.partition(".")
        for name, line in ours(path):
            other, _, inside = name.partition(".")
            place = f"{path.relative_to(ROOT)}:{line} imports {name}"
            if order.index(other) > order.index(unit):
                wrong.append(place)
            elif other == unit and inner and inside and (within := TABLE[unit]):
                mine, theirs = inner.partition(".")[0], inside.partition(".")[0]
                if within.index(theirs) > within.index(mine):
                    wrong.append(place)
    assert wrong == []


def test_no_imports_form_a_circle() -> None:
    """Not even imports for type checkers."""
    arrows = {module: {name for name, _ in ours(path)} - {module} for module, path in MODULES.items()}
    while leaves := [module for module, targets in arrows.items() if not targets & arrows.keys()]:
        for leaf in leaves:
            del arrows[leaf]
    assert sorted(arrows) == []


def test_only_the_ssh_transport_imports_paramiko() -> None:
    users = {
        module
        for module, path in MODULES.items()
        for name, _ in imported(path)
        if name.split(".")[0] == "paramiko"
    }
    assert {".".join(user.split(".")[:2]) for user in users} == {"transport.ssh"}


@pytest.mark.parametrize("folder", ["mesh", "firewall", "facts", "rules", "judge", "report"])
def test_only_transports_and_their_driver_reach_hosts(folder: str) -> None:
    """Code that reads, judges or shows opens no socket and starts no process; the mesh's agent runs on the
    hosts.
    """
    for path in (ROOT / folder).rglob("*.py"):
        if path.name != "agent.py":
            used = {name.split(".")[0] for name, _ in imported(path)}
            assert not used & {"socket", "subprocess", "paramiko", "requests", "urllib"}, path


@pytest.mark.parametrize("folder", ["facts", "job"])
def test_facts_and_the_job_judge_nothing(folder: str) -> None:
    """Problems, skips and undecided checks are made in `checks/`, `rules/` and the engine."""
    verdicts = {"Problem", "Skip", "Undecided"}
    for path in (ROOT / folder).rglob("*.py"):
        names = {name.rpartition(".")[2] for name, _ in imported(path)}
        attributes = {
            node.attr for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Attribute)
        }
        assert not verdicts & (names | attributes), path


def test_the_lowest_modules_import_only_the_standard_library() -> None:
    standard = sys.stdlib_module_names
    each_other = {"doctor.text.late.late", "doctor.text.hostprogram.sections"}
    for name in ("model", "errors", "text/late", "text/hostprogram", "text/secretnames"):
        used = {found for found, _ in imported(ROOT / f"{name}.py")} - each_other
        assert {found.split(".")[0] for found in used} <= standard, name


def test_what_runs_on_hosts_needs_nothing_but_python() -> None:
    for path in (ROOT / "mesh" / "agent.py", *(ROOT / "agents" / "onhost").glob("*.py")):
        used = {name for name, _ in imported(path) if not name.startswith("doctor.agents.onhost.")}
        assert {name.split(".")[0] for name in used} <= sys.stdlib_module_names


CLIENTS = {"urllib.request", "http", "ftplib", "smtplib", "imaplib", "telnetlib", "xmlrpc", "webbrowser"}
CLIENTS |= {"requests", "urllib3", "httpx", "aiohttp", "boto3", "sentry_sdk"}


def test_nothing_can_report_to_a_service() -> None:
    paths = [*MODULES.values(), *ROOT.parent.glob("checks/*.py")]
    found = [
        f"{path.name}:{line} imports {name}"
        for path in paths
        for name, line in imported(path)
        if CLIENTS & {name.partition(".")[0], ".".join(name.split(".")[:2])}
    ]
    assert not found


def test_what_the_map_names_is_there() -> None:
    _, _, rest = PAGE.read_text().partition("## Where a new thing goes\n")
    rows = [line for line in rest.partition("\n## ")[0].splitlines() if line.startswith("| ")]
    named = [path for row in rows for path in re.findall(r"`((?:\w+/)+(?:\w+\.py)?)`", row)]
    assert len(named) > 30
    top = ("checks", "docs", "playbooks", "tests")
    assert not [n for n in named if not ((ROOT.parent if n.split("/")[0] in top else ROOT) / n).exists()]
