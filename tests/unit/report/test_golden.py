"""Golden reports: the whole text of each, at two widths, and the whole JSON of three.

The names of the golden files carry the exit code. `UPDATE_GOLDEN=1 pytest` on this file writes them
again: read the difference before committing it. A new check changes none of them (see `DOZEN`).
"""

from __future__ import annotations

import os

import pytest
from msgspec.structs import replace

from doctor.report.envelope import ToolName, as_json
from doctor.report.json import check_report
from tests.support.paths import ROOT
from tests.support.reports import DOZEN, reports, text

GOLDEN = ROOT / "tests" / "golden"
AS_JSON = ("interrupted", "sick-hosts", "smoke-hung")
"""The JSON of the others is compared with its schema (`tests/unit/test_envelope.py`)."""


def compare(name: str, made: str) -> None:
    golden = GOLDEN / name
    if os.environ.get("UPDATE_GOLDEN"):
        golden.parent.mkdir(exist_ok=True)
        golden.write_text(made)
    assert golden.is_file(), f"no golden file {name}: run with UPDATE_GOLDEN=1"
    assert made == golden.read_text()


@pytest.mark.parametrize("name", reports())
def test_golden(name: str) -> None:
    made = reports()[name]
    stem = f"{name}.{made.exit_code}"
    compare(f"{stem}.80.txt", text(made, 80))
    compare(f"{stem}.200.txt", text(made, 200))
    if name in AS_JSON:
        compare(f"{stem}.json", as_json(replace(check_report(made), tool=ToolName(version="0"))).decode())


def test_a_run_with_mindspore_speaks_of_no_torch() -> None:
    assert "torch" not in text(reports()["smoke-mindspore"], 100, verbose=True)


def test_the_goldens_are_made_by_the_dozen_alone() -> None:
    used = {row.check for made in reports().values() for row in made.results}
    assert used == set(DOZEN)


def test_no_golden_file_is_left_over() -> None:
    stems = {name: f"{name}.{of.exit_code}" for name, of in reports().items()}
    texts = {f"{stem}.{width}.txt" for stem in stems.values() for width in (80, 200)}
    made = {path.name for path in GOLDEN.iterdir() if path.is_file()}
    assert made == texts | {f"{stems[name]}.json" for name in AS_JSON}


def test_quiet_and_verbose() -> None:
    made = reports()["sick-hosts"]
    plain, quiet, verbose = (text(made, 100, **o) for o in ({}, {"quiet": True}, {"verbose": True}))
    assert "backend gloo" in plain
    assert "backend gloo" not in quiet
    assert quiet.splitlines()[-2] == plain.splitlines()[-2], "the last sentence stays"
    assert "df -kP /dev/shm: " in verbose
    assert "does not apply  1 check: 1 (only for nccl jobs)" in verbose
    assert text(reports()["healthy"], 100, quiet=True).count("\n") == 1
