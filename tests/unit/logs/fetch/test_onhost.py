"""The program that finds and reads logs on a host runs on every Python that hosts have."""

from __future__ import annotations

import ast
import sys
from pathlib import Path

import pytest

import doctor
from doctor.logs.fetch.onhost import places

ONHOST = Path(places.__file__).parent
DOCTOR = Path(doctor.__file__).parent
SHARED = "doctor.agents.onhost."
"""It is sent with every agent."""
FILES = [*ONHOST.glob("*.py"), *DOCTOR.glob("around/onhost/*.py"), *DOCTOR.glob("agents/onhost/*.py")]


@pytest.mark.parametrize("path", sorted(FILES), ids=lambda path: str(path.relative_to(DOCTOR)))
def test_it_is_python_3_6_and_the_standard_library(path: Path) -> None:
    tree = ast.parse(path.read_text(), feature_version=(3, 6))
    used = {node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    used |= {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    ours = {each for each in used if each.startswith("doctor.")}
    package = ".".join(("doctor", *path.relative_to(DOCTOR).parts[:-1], ""))
    assert all(each.startswith((package, SHARED)) for each in ours)
    assert {each.split(".")[0] for each in used - ours} <= sys.stdlib_module_names
    for node in ast.walk(tree):  # that Python evaluates generics and unions in a signature
        signature = [node.returns] if isinstance(node, ast.FunctionDef) else []
        signature += [node.annotation] if isinstance(node, ast.arg) else []
        assert not any(isinstance(each, ast.Subscript | ast.BinOp) for each in signature), ast.unparse(node)
