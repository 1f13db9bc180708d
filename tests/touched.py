"""Runs the tests that a change touches: `make touched BASE=main`, or `python -m tests.touched main`.

Folders of tests mirror `doctor/`: a module is tested in the folders of its name, and by the tests that import
it or name its file. The changes are those between the working tree and the commit where it left BASE, by git.
"""

import os
import re
import subprocess
import sys
from collections.abc import Iterable
from functools import cache
from pathlib import Path, PurePath

from tests.support.cases import cases_of, owner
from tests.support.paths import ROOT

TIERS = ("unit", "process", "hosts")
LAB = ("tests/unit/lab", "tests/process/lab", "tests/hosts/lab")
"""The tests of the lab itself."""
MIRRORED = {
    "doctor": "",
    "checks": "checks",
    "examples": "examples",
    "playbooks/exams": "judge",
    "playbooks/remedies": "judge",
    "playbooks/symptoms": "logs",
}
"""Folders of sources, and the folders of tests for them."""
PAGES = ("tests/hosts/test_docs.py", "tests/unit/test_readmes.py")
MAIN = re.compile(r"^@pytest\.mark\.main\n(?:(?!def ).*\n)*def (\w+)", re.MULTILINE)
ALWAYS = ("tests/unit/test_layering.py", "tests/unit/test_quoted_commands.py", "tests/unit/test_vendors.py")
"""Rules that apply to every source file."""


def changed(base: str) -> list[str]:
    """The files that differ from the commit where this branch left `base`, and the files that git does not
    know yet.
    """
    left = _git("merge-base", base, "HEAD").strip()
    new = _git("ls-files", "--others", "--exclude-standard")
    return sorted({*_git("diff", "--name-only", left).splitlines(), *new.splitlines()})


def touched(paths: Iterable[str]) -> list[str]:
    """Files and folders of tests for these paths, none of them inside another."""
    found = {test for path in paths for test in _tests_of(PurePath(path))}
    there = {test for test in (*found, *ALWAYS) if found and (ROOT / test.partition("::")[0]).exists()}
    return sorted(test for test in there if not there & {str(parent) for parent in PurePath(test).parents})


def _tests_of(path: PurePath) -> set[str]:
    if path.name.startswith("test_"):
        return {str(path)}
    if path.parent.name == "cases":
        return _tests_of(owner(path))
    of_all = {*LAB} if path.is_relative_to("tests/lab") else {*PAGES} if path.suffix == ".md" else set()
    return of_all | _mirror(path) | _naming(path)


def _mirror(path: PurePath) -> set[str]:
    """For each tier, the folder that mirrors the folder of a source, or the nearest one above it. In tiers
    that start programs or hosts, which takes time, only the files named after the module, else the main
    faults there, if there are any.
    """
    source = next((name for name in MIRRORED if path.is_relative_to(name)), None)
    if source is None:
        return set()
    inner = PurePath(MIRRORED[source]) / path.parent.relative_to(source)
    near = [folder for folder in (inner, *inner.parents) if folder.parts]
    found = set[str]()
    for tier in TIERS:
        folders = (ROOT / "tests" / tier / folder for folder in near)
        for folder in [folder for folder in folders if folder.is_dir()][:1]:
            place = str(folder.relative_to(ROOT))
            own = {str(file.relative_to(ROOT)) for file in folder.glob(f"test_{path.stem}*.py")}
            found |= {place} if tier == "unit" else own or _main(place) or {place}
    return found


def _main(folder: str) -> set[str]:
    """The tests below a folder that are marked `main`."""
    below = {test: text for test, text in _sources().items() if test.startswith(f"{folder}/")}
    return {f"{test}::{name}" for test, text in below.items() for name in MAIN.findall(text)}


def _naming(path: PurePath) -> set[str]:
    """Test files that import a module, or mention a file by its path or name."""
    module = ".".join(path.with_suffix("").parts).removesuffix(".__init__")
    package, _, name = map(re.escape, module.rpartition("."))
    said = rf"\b{package}\.{name}\b|from {package} import [^#]*?\b{name}\b"
    if path.suffix != ".py":
        said = rf"{re.escape(str(path))}\b|\"{re.escape(path.name)}\""
    return {test for test, text in _sources().items() if re.search(said, text)}


@cache
def _sources() -> dict[str, str]:
    files = (path for tier in TIERS for path in (ROOT / "tests" / tier).rglob("test_*.py"))
    return {str(path.relative_to(ROOT)): path.read_text() + _cases(path) for path in files}


def _cases(test: Path) -> str:
    own = cases_of(test)
    return own.read_text() if own.exists() else ""


def _git(*args: str) -> str:
    return subprocess.run(["git", *args], cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True).stdout


if __name__ == "__main__":
    base, *more = sys.argv[1:]
    if tests := touched(changed(base)):
        print("touched:", *tests, sep="\n  ", flush=True)
        os.execv(sys.executable, [sys.executable, "-m", "pytest", "-nauto", "--dist=loadfile", *tests, *more])
    print("No test is touched.")
