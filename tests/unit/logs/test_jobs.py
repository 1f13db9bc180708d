"""The logs of real jobs: the conclusions match the injected faults."""

import shutil
import tarfile
from pathlib import Path

import pytest

from doctor.logs.explanation import Explanation, last_words
from doctor.logs.model import Conclusion, LogOutcome, Party
from tests.support.fault_logs import JOBS, Truth, concluded, innocents, truths, wrong

TRUTHS = truths()
HEALTHY = sorted(path.name for path in JOBS.glob("healthy*"))


@pytest.mark.parametrize("name", TRUTHS)
def test_what_was_done_is_found(name: str) -> None:
    truth = TRUTHS[name]
    said = concluded(JOBS / name)
    assert not wrong(said, truth), shown(said, truth)


@pytest.mark.slow
@pytest.mark.parametrize("name", TRUTHS)
def test_without_any_one_file_nobody_innocent_is_accused(name: str, tmp_path: Path) -> None:
    truth = TRUTHS[name]
    for number, left_out in enumerate(truth.files if len(truth.files) > 1 else ()):
        folder = tmp_path / str(number)
        shutil.copytree(JOBS / name, folder)
        (folder / left_out.relative_to(JOBS / name)).unlink()
        said = concluded(folder)
        assert not innocents(said, truth), f"without {left_out.name}: {shown(said, truth)}"


@pytest.mark.parametrize("name", TRUTHS)
def test_in_one_file_nobody_innocent_is_accused(name: str, tmp_path: Path) -> None:
    """As people paste them, one after the other, without the names of the files."""
    truth = TRUTHS[name]
    pasted = tmp_path / "pasted.txt"
    pasted.write_bytes(b"".join(path.read_bytes() for path in truth.files))
    said = concluded(pasted)
    assert said.outcome is not LogOutcome.CLEAN
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
    assert said.outcome is LogOutcome.CLEAN, said.charges or said.odd


def test_the_head_is_named_by_its_host() -> None:
    said = concluded(JOBS / "drop")
    assert said.charges[0].says.startswith("node1 (198.18.0.11): node2 and node3 could not reach it: ")
    assert said.hosts == ("node1",)
    assert concluded(JOBS / "master").charges[0].who != (Party(host="node1", address="198.18.0.12"),)


def test_who_met_another_collective_is_told_by_its_end() -> None:
    """The line itself has no rank; the rank that ended itself there wrote it."""
    first = concluded(JOBS / "skipped").charges[0]
    assert first.says.startswith("rank 2 on node2 or a neighbour (ranks 1, 3) issued a different collective")
    assert "data of 132 bytes came for a buffer of 4" in first.says
    assert {each.rank for each in first.who} == {1, 2, 3}


def test_without_a_host_all_known_ones_are_examined() -> None:
    assert concluded(JOBS / "skipped").hosts == ("node1", "node2")


@pytest.mark.parametrize(("name", "is_open"), [("killed", True), ("oom", False), ("stopped", False)])
def test_memory_is_open_only_where_it_may_be_the_cause(name: str, is_open: bool) -> None:
    said = concluded(JOBS / name)
    assert any("memory ran out" in each for each in said.open) is is_open


def test_clocks_are_told_of_only_where_they_would_decide() -> None:
    assert not any(
        "clocks" in each for name in ("drop", "oom", "skipped") for each in concluded(JOBS / name).open
    )


def test_a_cause_without_a_symptom_has_a_few_words() -> None:
    said = concluded(JOBS / "exception")
    assert said.charges[0].brief == "exception of the program"
    assert " ended with an exception of the program: " in last_words(Explanation(said))


def test_torchruns_rendezvous_counts_hosts(tmp_path: Path) -> None:
    shutil.copy(JOBS / "version/node1.log", tmp_path)
    (charge,) = concluded(tmp_path).charges
    assert charge.says == "1 of 2 hosts or ranks never came to the rendezvous"
    assert charge.who == ()


def test_every_fault_is_there() -> None:
    assert len({name.split("-")[0] for name in TRUTHS}) >= 12


def shown(said: Conclusion, truth: Truth) -> str:
    lines = [f"{truth.did}: {wrong(said, truth)}", f"outcome {said.outcome.value}"]
    lines += [
        f"{each.role.value} {each.symptom}: {each.says} {each.who} {each.checks}" for each in said.charges
    ]
    return "\n".join(lines)


def test_a_rank_that_ended_once_is_told_of_once() -> None:
    assert not any("times" in each or "lines)" in each for _, each in concluded(JOBS / "killed").story)
