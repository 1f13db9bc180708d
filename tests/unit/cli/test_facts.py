"""`doctor facts` judges only whether hosts answered: its exit codes, its files, its questions."""

import csv
import io
import json
from dataclasses import replace
from pathlib import Path

import pytest

from doctor.cli import run
from doctor.judge.fact_values import ASKED
from doctor.recording import Recording, save
from tests.support.cases import cases
from tests.support.recordings import heard, recording
from tests.support.reports import NAMES, SMALL_SHM, answering, lost, smoke_runs


def replayed(of: Recording, folder: Path, *options: str) -> int:
    save(of, folder / "run.json")
    return run(["facts", "--replay", str(folder / "run.json"), *options])


def test_all_hosts_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert replayed(recording(NAMES), tmp_path) == 0
    assert "All hosts are alike." in capsys.readouterr().out


def test_a_fault_is_shown_and_decides_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`doctor check` judges it."""
    small = {"node2": heard(2, NAMES, spaces=SMALL_SHM)}
    assert replayed(recording(NAMES, heard=small), tmp_path) == 0
    assert "! Unlike the others: node2 (/dev/shm)." in capsys.readouterr().out


def test_a_training_that_was_wanted_is_not_missed(tmp_path: Path) -> None:
    assert replayed(recording(NAMES, smoke_wanted=True, no_smoke="no host passed"), tmp_path) == 0
    assert replayed(recording(NAMES, smoke_wanted=True, smoke=(smoke_runs()["hung"],)), tmp_path) == 0


def test_hosts_out_of_reach(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert replayed(answering("node1", "node2", "node3", unreached=lost("node4")), tmp_path) == 1
    assert "node4 reported nothing: connection refused" in capsys.readouterr().out


def test_hosts_that_had_not_answered(tmp_path: Path) -> None:
    assert replayed(answering("node1", unfinished=tuple(NAMES[1:]), mesh=None), tmp_path) == 3


def test_an_answer_that_is_not_whole_is_not_all(tmp_path: Path) -> None:
    cut = replace(heard(2, NAMES), complete=False)
    assert replayed(recording(NAMES, heard={"node2": cut}), tmp_path) == 1


def test_csv_on_stdout_leaves_the_screen_to_stderr(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert replayed(recording(NAMES), tmp_path, "--csv", "-") == 0
    out, err = capsys.readouterr()
    assert [row["host"] for row in csv.DictReader(io.StringIO(out))] == NAMES
    assert "All hosts are alike." in err


def test_files(tmp_path: Path) -> None:
    names = [str(tmp_path / name) for name in ("facts.json", "facts.csv", "again.json")]
    assert (
        replayed(recording(NAMES), tmp_path, "--json", names[0], "--csv", names[1], "--save", names[2]) == 0
    )
    assert json.loads(Path(names[0]).read_bytes())["hosts"][0]["facts"]["somaxconn"] == 4096
    assert Path(names[1]).read_text().startswith("host,address,reached_by,")
    assert run(["facts", "--replay", names[2]]) == 0


@cases
def test_what_cannot_be_done_is_refused(
    options: tuple[str, ...], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert replayed(recording(NAMES), tmp_path, *options) == 2
    assert said in " ".join(capsys.readouterr().err.split())


def test_no_host_is_asked_what_a_check_does_not_ask() -> None:
    """The table consists of what checks need: it sends no command of its own to a host."""
    from doctor.judge.examine import facts_of
    from doctor.judge.registry import find_checks

    known = {fact.name for fact in facts_of(find_checks().checks)}
    assert {fact.name for fact in ASKED} <= known


SMALL = {"node2": heard(2, NAMES, spaces=SMALL_SHM)}


def test_quiet_shows_only_what_stands_out(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert replayed(recording(NAMES), tmp_path, "-q") == 0
    assert capsys.readouterr().out == ""
    assert replayed(recording(NAMES, heard=SMALL), tmp_path, "-q") == 0
    assert capsys.readouterr().out == "! Unlike the others: node2 (/dev/shm).\n"


def test_verbose_shows_every_fact_of_every_host(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert replayed(recording(NAMES), tmp_path, "-v") == 0
    out = capsys.readouterr().out
    assert "somaxconn" in out.split("HOST")[1]
    assert "All hosts are alike." in out


def test_pages_name_the_host_that_differs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    html, markdown = tmp_path / "facts.html", tmp_path / "facts.md"
    files = ("--html", str(html), "--markdown", str(markdown))
    assert replayed(recording(NAMES, heard=SMALL), tmp_path, *files) == 0
    assert "chmod a+r" in capsys.readouterr().err
    for text in (html.read_text(), markdown.read_text()):
        assert "Unlike the others: node2 (/dev/shm)." in text
        assert "64 MB" in text
    assert "! 64 MB (node2)" in markdown.read_text()
