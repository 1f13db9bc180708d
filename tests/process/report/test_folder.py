"""`--report-dir` of whole runs: files for each run, mistakes, and runs that were interrupted."""

import json
import os
import re
import signal
import stat
import subprocess
import time
from pathlib import Path

import pytest

from doctor.recording import load
from tests.support.commands import DOCTOR, doctor, environment

HERE = ("check", "--local", "--only", "shm-small")
FORM = r"doctor-\d{8}T\d{6}Z-(4711-)?\d+\.(json|html|junit\.xml|md|txt|run\.json|hosts)"


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


SUFFIXES = [".html", ".json", ".junit.xml", ".md", ".run.json", ".txt"]
"""The suffixes of the files of a no-go run."""


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_each_run_has_files_of_its_own(tmp_path: Path) -> None:
    folder = tmp_path / "runs"
    for _ in range(2):
        ran = doctor(*HERE, "--report-dir", str(folder), env={"SLURM_JOB_ID": "4711"})
        assert (ran.returncode, ran.stderr) == (0, ""), ran.stderr
    found = names(folder)
    assert len(found) == 14
    assert all(re.fullmatch(FORM, name) and "-4711-" in name for name in found), found
    stems = {name.split(".")[0] for name in found}
    assert len(stems) == 2
    stem = max(
        stems, key=lambda each: (folder / f"{each}.json").stat().st_mtime_ns
    )  # numbers of processes wrap
    assert json.loads((folder / f"{stem}.json").read_bytes())["verdict"] == "healthy"
    assert (folder / f"{stem}.txt").read_text().endswith(ran.stdout[-20:])
    assert load(folder / f"{stem}.run.json").command == "check"
    assert (folder / f"{stem}.hosts").read_text().endswith("slots=2\n")
    assert {mode(path) for path in folder.iterdir()} == {0o600}


def test_an_unwritable_folder_is_reported_before_any_host_is_asked(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    ran = doctor(
        "check", "nowhere.invalid", "--report-dir", str(tmp_path / "file"), "--save", "x", cwd=tmp_path
    )
    assert (ran.returncode, ran.stdout) == (2, "")
    assert f"--report-dir {tmp_path}/file: cannot be written: " in ran.stderr
    assert "Name a folder that is writable." in ran.stderr
    assert names(tmp_path) == ["file"]


def test_a_no_go_is_three_lines_and_names_the_whole_report(tmp_path: Path) -> None:
    folder = tmp_path / "runs"
    ran = doctor(*HERE, "--expect", "shm_mb=100000000", "--report-dir", str(folder))
    assert ran.returncode == 1
    what, where, then = ran.stderr.splitlines()
    assert what.startswith("doctor: no go: shm-small: /dev/shm is too small")
    assert re.match(r" {8}On \S+; 0 of 1 hosts are healthy \(faulty \S+\)\.", where)
    (text,) = folder.glob("*.txt")
    assert then == f"        Next: doctor explain shm-small; the whole report is {text}"
    assert "shm-small" in text.read_text()
    assert ran.stdout == text.read_text(), "a log has the same"
    assert not list(folder.glob("*.hosts")), "nobody goes"


SLOW = "#!/bin/sh\n: >{mark}\nexec sleep 30\n"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_an_interrupted_run_leaves_a_report_of_its_interruption_or_nothing(
    number: signal.Signals, tmp_path: Path
) -> None:
    folder, mark, tool = tmp_path / "runs", tmp_path / "asked", tmp_path / "dmesg"
    tool.write_text(SLOW.format(mark=mark))
    tool.chmod(0o755)
    with subprocess.Popen(
        [*DOCTOR, "check", "--local", "--report-dir", str(folder), "--print", "launch"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment({"PATH": f"{tmp_path}:{os.environ['PATH']}"}),
    ) as run:
        try:
            deadline = time.monotonic() + 60
            while not mark.exists() and run.poll() is None and time.monotonic() < deadline:
                time.sleep(0.02)
            assert mark.exists()
            assert names(folder) == [], "nothing that a reader could take for a report"
            run.send_signal(number)
            out, errors = run.communicate(timeout=60)
        finally:
            run.kill()
    assert out == "", "no line to go on with"
    if number is signal.SIGKILL:
        assert names(folder) == []
        return
    assert run.returncode == 128 + number
    assert "doctor: no go: interrupted by SIGTERM before the verdict." in errors
    found = names(folder)
    assert [name.partition("-interrupted")[2] for name in found] == SUFFIXES
    assert "Interrupted." in (folder / found[-1]).read_text()
