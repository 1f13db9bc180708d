"""`doctor run --restarts`: again without the host that ended the job, never after a fault of the program."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.lab import Lab
from tests.support.cases import from_cases

HOSTS = "node[1-3]"
LOOP = from_cases(__file__, "LOOP", str)
"""A job that starts its ranks one after the other."""
WELL = "echo step 1 loss 2.5\n"
KILLED = from_cases(__file__, "KILLED", str)
"""Emulated: the kernel kills a rank for lack of memory, and its log says so."""
RAISES = "exec python3 -c 'raise ValueError(\"shape of the batch\")'\n"


QUOTES = from_cases(__file__, "QUOTES", str)
"""A rank that prints a text of strangers and ends by itself."""


def attempts(
    lab: Lab, folder: Path, ranks: dict[str, str], restarts: int
) -> tuple[int, list[dict[str, Any]]]:
    """The exit code, and each start of the job."""
    for host in lab:
        host.write("/tmp/rank", ranks.get(host.name, WELL))
    words = ["run", "--ssh-config", str(lab.ssh_config), HOSTS, "--no-preflight", "--restarts", str(restarts)]
    words += ["--json", str(folder / "run.json"), "--report-dir", str(folder / "runs"), "--"]
    loop = ["sh", "-c", LOOP, "sh", str(lab.ssh_config), "{hosts}"]
    done = lab.run([sys.executable, "-m", "doctor", *words, *loop])
    report = json.loads((folder / "run.json").read_text())
    assert report["exit_code"] == done.returncode, done.stderr
    return done.returncode, report["around"]["attempts"]


def test_again_without_each_host_that_ended_it(lab: Lab, tmp_path: Path) -> None:
    code, made = attempts(lab, tmp_path, {"node1": KILLED, "node2": KILLED}, 5)
    assert [each["hosts"] for each in made] == [["node1", "node2", "node3"], ["node2", "node3"], ["node3"]], (
        made
    )
    assert code == 0
    folders = [each["folder"] for each in made]
    assert len({*folders}) == 3
    assert all("node" in (Path(each) / "why.txt").read_text() for each in folders[:2])
    assert folders[2] is None
    (whole,) = {Path(each).parent for each in folders[:2]}
    assert whole.stat().st_mode & 0o077 == 0
    assert [each["exit_code"] for each in made] == [1, 1, 0]


def test_never_after_a_fault_of_the_program(lab: Lab, tmp_path: Path) -> None:
    code, made = attempts(lab, tmp_path, {"node2": RAISES}, 5)
    assert (code, len(made)) == (1, 1)
    assert "ValueError: shape of the batch" in made[0]["why"]


def test_never_for_words_that_only_the_output_holds(lab: Lab, tmp_path: Path) -> None:
    code, made = attempts(lab, tmp_path, {"node1": QUOTES}, 5)
    assert (code, len(made)) == (1, 1), made


@pytest.mark.long
def test_never_more_often_than_asked_for(lab: Lab, tmp_path: Path) -> None:
    code, made = attempts(lab, tmp_path, {"node1": KILLED, "node2": KILLED}, 1)
    assert (code, len(made)) == (1, 2)
