"""Golden reports: the whole text of each, at two widths, and the whole JSON of three.

The names of the golden files carry the exit code. `UPDATE_GOLDEN=1 pytest` on this file writes them
again: read the difference before committing it. A new check changes none of them (see `DOZEN`).
"""

from pathlib import Path

import pytest
from msgspec.structs import replace

from doctor.report.files.envelope import ToolName, as_json
from doctor.report.files.json import check_report
from tests.support.golden import compare
from tests.support.paths import ROOT
from tests.support.reports import DOZEN, reports, text

GOLDEN = ROOT / "tests" / "golden"
AS_JSON = ("interrupted", "sick-hosts", "smoke-hung")
"""The JSON of the others is compared with its schema (`tests/unit/test_envelope.py`)."""


@pytest.mark.parametrize("name", reports())
def test_golden(name: str) -> None:
    made = reports()[name]
    stem = f"{name}.{made.exit_code}"
    compare(GOLDEN / f"{stem}.80.txt", text(made, 80))
    compare(GOLDEN / f"{stem}.200.txt", text(made, 200))
    if name in AS_JSON:
        told = as_json(replace(check_report(made), tool=ToolName(version="0")))
        compare(GOLDEN / f"{stem}.json", told.decode())


@pytest.mark.parametrize("old", ["it was so\n", None])
def test_a_stale_golden_fails_and_says_how_it_is_written_again(
    old: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    golden = tmp_path / "report.1.80.txt"
    if old:
        golden.write_text(old)
    monkeypatch.delenv("UPDATE_GOLDEN", raising=False)
    with pytest.raises(AssertionError, match=r"UPDATE_GOLDEN=1 to write golden file report\.1\.80\.txt"):
        compare(golden, "it is so\n")
    monkeypatch.setenv("UPDATE_GOLDEN", "1")
    compare(golden, "it is so\n")
    assert golden.read_text() == "it is so\n"


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
