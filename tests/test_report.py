"""Golden reports: the whole text, at two widths, and the whole JSON.

The golden files' names carry the exit code. `UPDATE_GOLDEN=1 pytest tests/test_report.py` writes them anew:
read the difference before you commit it.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from doctor.report.json import as_json
from tests.reports import reports, text

GOLDEN = Path(__file__).parent / "golden"


def compare(name: str, made: str) -> None:
    golden = GOLDEN / name
    if os.environ.get("UPDATE_GOLDEN"):
        golden.parent.mkdir(exist_ok=True)
        golden.write_text(made)
    assert golden.is_file(), f"no golden file {name}: run with UPDATE_GOLDEN=1"
    assert made == golden.read_text()


@pytest.mark.parametrize("name", reports())
def test_golden(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("doctor.report.json.__version__", "0")
    made = reports()[name]
    stem = f"{name}.{made.exit_code}"
    compare(f"{stem}.80.txt", text(made, 80))
    compare(f"{stem}.200.txt", text(made, 200))
    compare(f"{stem}.json", as_json(made).decode())


def test_no_golden_file_is_left_over() -> None:
    made = {f"{name}.{of.exit_code}" for name, of in reports().items()}
    found = {re.sub(r"(\.80|\.200)?\.(txt|json)$", "", path.name) for path in GOLDEN.iterdir()}
    assert found == made


def test_quiet_and_verbose() -> None:
    made = reports()["sick-hosts"]
    plain, quiet, verbose = (text(made, 100, **o) for o in ({}, {"quiet": True}, {"verbose": True}))
    assert "backend gloo" in plain
    assert "backend gloo" not in quiet
    assert quiet.splitlines()[-2] == plain.splitlines()[-2], "the last sentence stays"
    assert "df -kP /dev/shm: " in verbose
    assert "does not apply: " in verbose
    assert text(reports()["healthy"], 100, quiet=True).count("\n") == 1
