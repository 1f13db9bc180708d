"""The guide to writing a check is true: its example is the real code, and a check costs three files."""

import ast
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support.cases import from_cases
from tests.support.paths import ROOT

PAGE = ROOT / "docs/writing-a-check.md"
LEFT = shutil.ignore_patterns(".*", "build", "dist", "*.egg-info")
KERNEL_FAULTS = from_cases(str(ROOT / "tests/hosts/checks/test_kernel.py"), "FAULTS", dict[str, Any])
AFFECTED = from_cases(__file__, "AFFECTED", tuple[str, ...])
"""Tests that look at all checks and facts, or compare the output of all checks with a file."""
ALSO = ("tests/unit/cli", "tests/unit/facts", "tests/unit/report", "tests/unit/exam")
"""Tests that run all checks, but look at something else."""


def example() -> tuple[str, str, str]:
    """The check, its Chinese page and its test, as the page shows them."""
    check, chinese, test = re.findall(
        r"^```(?:python|yaml)\n(.*?)^```", PAGE.read_text(), re.MULTILINE | re.DOTALL
    )
    return check, chinese, test


def test_the_example_is_copied_from_the_code() -> None:
    check, chinese, test = example()
    assert chinese in (ROOT / "checks/zh/kernel.yaml").read_text()
    assert check[check.index("@check(") :] in (ROOT / "checks/kernel.py").read_text()
    of_kernel = (ROOT / "tests/hosts/checks/test_kernel.py").read_text()
    assert test[test.index("def swapping") : test.index("\n\n\ndef test_")] in of_kernel
    (row,) = re.findall(r"Fault(\(.*\))$", test, re.MULTILINE)
    real = KERNEL_FAULTS["swap in use"]
    shown = ast.literal_eval(row.replace("swapping", "'swapping'"))
    assert shown == (real["check"], *real["inject"], real["status"], tuple(real["says"]))
    (fact,) = re.findall(r"`(SWAP = [^`]+)`", PAGE.read_text())
    assert fact in (ROOT / "doctor/facts/memory.py").read_text()


def test_the_files_that_the_page_names_exist() -> None:
    named = re.findall(r"\b(?:tests|doctor|playbooks|checks)/[\w/*.]*[\w/]", PAGE.read_text())
    assert len(named) > 10
    assert [name for name in named if not [*ROOT.glob(name.rstrip("/"))]] == []


def add_check(tree: Path, name: str) -> list[Path]:
    """Add the page's check under another name, as the page says; returns the files that it took."""
    files = [
        tree / f"checks/{name}.py",
        tree / f"checks/zh/{name}.yaml",
        tree / f"tests/hosts/checks/test_{name}.py",
    ]
    for file, text in zip(files, example(), strict=True):
        assert not file.exists()
        file.write_text(text.replace("swap-active", name.replace("_", "-")).replace("swap_active", name))
    return files


def add_fact(tree: Path, name: str, check: Path) -> None:
    """Add a fact for the check, next to the one that it is copied from."""
    memory, fact = tree / "doctor/facts/memory.py", name.upper()
    with memory.open("a") as file:
        file.write(f'{fact} = Fact("{name.replace("_", "-")}", Read(("/proc/swaps",)), _swap)\n')
    check.write_text(re.sub(r"\bSWAP\b", fact, check.read_text()))


@pytest.mark.slow
@pytest.mark.parametrize("affected", [AFFECTED, pytest.param(ALSO, marks=pytest.mark.long)])
def test_a_check_costs_three_files_and_a_fact_one_more(affected: tuple[str, ...], tmp_path: Path) -> None:
    """In a copy of the tree everything else stays green, and no golden file or sample is touched."""
    tree = tmp_path / "tree"
    shutil.copytree(ROOT, tree, ignore=LEFT)
    check, _, test = add_check(tree, "swap_busy")
    other, untranslated, other_test = add_check(tree, "swap_held")
    untranslated.write_text("swap-held:\n  english: untranslated\n")
    add_fact(tree, "swap_held", other)

    def run(*arguments: str) -> str:
        done = subprocess.run(
            [sys.executable, "-m", *arguments],
            cwd=tree,
            env={**os.environ, "PYTHONPATH": str(tree)},
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    assert f"Written in {check}" in run("doctor", "explain", "swap-busy", "-v")
    assert f"Written in {other}" in run("doctor", "explain", "swap-held", "-v")
    run("ruff", "check", *(str(file) for file in (check, test, other, other_test)))
    assert f"{test.relative_to(tree)}::test_swap_in_use" in run("pytest", "--collect-only", "-q", str(test))
    quickly = ("-n0", "-p", "no:cacheprovider", "-m", "not slow", "--hypothesis-profile=quick")
    said = run("pytest", "-q", *quickly, *affected)
    assert (
        affected == ALSO
        or "1 test: to be translated into Chinese: checks/zh/swap_held.yaml: swap-held" in said
    )
