"""What the smoke run starts on hosts is read by their Python, which may be 3.8."""

import ast
from pathlib import Path

from tests.support.each import each
from tests.support.paths import ROOT


@each("path", sorted((ROOT / "doctor" / "smoke" / "onhost").rglob("*.py")))
def test_python_3_8_reads_it(path: Path) -> None:
    ast.parse(path.read_text(), feature_version=(3, 8))
