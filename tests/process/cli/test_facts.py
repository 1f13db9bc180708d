"""`doctor facts` of this machine, in a pipe and on a terminal."""

import json
import os
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest

from doctor.recording import save
from tests.support.commands import DOCTOR, doctor, environment, on_terminal
from tests.support.recordings import heard, recording
from tests.support.reports import NAMES, SMALL_SHM


def test_this_machine_in_a_pipe(tmp_path: Path) -> None:
    file = tmp_path / "facts.json"
    done = doctor("facts", "--local", "--json", str(file), env={"LANG": "C", "LC_ALL": "C", "COLUMNS": "80"})
    assert done.returncode == 0, done.stderr
    assert done.stdout.isascii()
    assert "\x1b" not in done.stdout
    (host,) = json.loads(file.read_bytes())["hosts"]
    assert host["facts"]["kernel"] == os.uname().release
    assert host["facts"]["reached_by"] == "local"
    assert f"kernel {os.uname().release}" in " ".join(done.stdout.split())


@pytest.mark.parametrize(("env", "red"), [({}, True), ({"NO_COLOR": "1"}, False)])
def test_the_odd_one_shows_with_and_without_colours(
    env: Mapping[str, str], red: bool, tmp_path: Path
) -> None:
    odd = {"node2": heard(2, NAMES, spaces=SMALL_SHM)}
    save(recording(NAMES, heard=odd), tmp_path / "run.json")
    asked = ["facts", "--replay", str(tmp_path / "run.json")]
    said = on_terminal(asked, environment({"TERM": "xterm", **env}))
    assert "! 64 MB" in said
    assert ("\x1b[1;31m! 64 MB" in said) is red
    assert ("\x1b" in said) is red


def test_a_full_disk_behind_stdout_loses_no_file(tmp_path: Path) -> None:
    save(recording(NAMES), tmp_path / "run.json")
    run = [*DOCTOR, "facts", "--replay", str(tmp_path / "run.json"), "--csv", str(tmp_path / "facts.csv")]
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(run, stdout=full, stderr=subprocess.PIPE, text=True, timeout=60, check=False)
    assert done.returncode not in (0, 1, 3)
    assert "stdout could not be written: No space left on device" in done.stderr
    assert (tmp_path / "facts.csv").read_text().count("\n") == 5
