"""The logs of real jobs: what is said of them is what was done to them."""

from __future__ import annotations

import shutil
import tarfile
from collections.abc import Mapping
from pathlib import Path

import pytest
from _pytest.mark import ParameterSet

from doctor.logs.model import Conclusion, Outcome
from tests.support.fault_logs import JOBS, Truth, concluded, innocents, truths, wrong

TRUTHS = truths()
PASTED = {"shm-loader": "the host of the first torchrun in a file is taken for that of all its lines"}
HEALTHY = sorted(path.name for path in JOBS.glob("healthy*"))


def each(known: Mapping[str, str]) -> list[ParameterSet]:
    """All jobs; those that are known to go wrong, with the reason."""
    marks = {name: [pytest.mark.xfail(strict=True, reason=known[name])] for name in known}
    return [pytest.param(name, marks=marks.get(name, [])) for name in TRUTHS]


@pytest.mark.parametrize("name", TRUTHS)
def test_what_was_done_is_found(name: str) -> None:
    truth = TRUTHS[name]
    said = concluded(JOBS / name)
    assert not wrong(said, truth), shown(said, truth)


@pytest.mark.parametrize("name", TRUTHS)
def test_without_any_one_file_nobody_innocent_is_accused(name: str, tmp_path: Path) -> None:
    truth = TRUTHS[name]
    for number, left_out in enumerate(truth.files if len(truth.files) > 1 else ()):
        folder = tmp_path / str(number)
        shutil.copytree(JOBS / name, folder)
        (folder / left_out.relative_to(JOBS / name)).unlink()
        said = concluded(folder)
        assert not innocents(said, truth), f"without {left_out.name}: {shown(said, truth)}"


@pytest.mark.parametrize("name", each(PASTED))
def test_in_one_file_nobody_innocent_is_accused(name: str, tmp_path: Path) -> None:
    """As people paste them, one after the other, without the names of the files."""
    truth = TRUTHS[name]
    pasted = tmp_path / "pasted.txt"
    pasted.write_bytes(b"".join(path.read_bytes() for path in truth.files))
    said = concluded(pasted)
    assert said.outcome is not Outcome.CLEAN
    assert not innocents(said, truth), shown(said, truth)


@pytest.mark.parametrize("name", ["killed", "exception-redirects", "oom"])
def test_an_archive_says_what_its_folder_says(name: str, tmp_path: Path) -> None:
    archive = tmp_path / f"{name}.tar.gz"
    with tarfile.open(archive, "w:gz") as file:
        file.add(JOBS / name, name)
    one, other = concluded(archive), concluded(JOBS / name)
    assert [(each.symptom, each.who) for each in one.charges] == [
        (each.symptom, each.who) for each in other.charges
    ]


@pytest.mark.parametrize("name", HEALTHY)
def test_nothing_is_said_of_a_healthy_job(name: str) -> None:
    said = concluded(JOBS / name)
    assert said.outcome is Outcome.CLEAN, said.charges or said.odd


def test_every_fault_is_there() -> None:
    assert len({name.split("-")[0] for name in TRUTHS}) >= 12


def shown(said: Conclusion, truth: Truth) -> str:
    lines = [f"{truth.did}: {wrong(said, truth)}", f"outcome {said.outcome.value}"]
    lines += [
        f"{each.role.value} {each.symptom}: {each.says} {each.who} {each.checks}" for each in said.charges
    ]
    return "\n".join(lines)
