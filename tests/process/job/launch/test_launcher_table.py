"""A new launcher is one file and one row: it works with no other change."""

import json
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import psutil
import pytest

import doctor
from doctor.job.launch import launchers
from doctor.job.launch.launchers import NUMBERS
from tests.support.cases import from_cases

PACKAGE = Path(doctor.__file__).parent
TABLE = Path(launchers.__file__).parent
GUIDE = PACKAGE.parent / "docs" / "adding-a-launcher.md"

USE = from_cases(__file__, "USE", str)


HANG = from_cases(__file__, "HANG", str)
RANKRUN = from_cases(__file__, "RANKRUN", str)


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A copy of the tree with the guide's launcher."""
    shutil.copytree(PACKAGE, tmp_path / "doctor", ignore=shutil.ignore_patterns("__pycache__"))
    folder = tmp_path / TABLE.relative_to(PACKAGE.parent)
    (row,) = re.findall(r"^```python\n(.*?)^```", GUIDE.read_text(), re.MULTILINE | re.DOTALL)
    (folder / "rankrun.py").write_text(row)
    table, name = (folder / "__init__.py").read_text(), launchers.__name__
    table = table.replace(f"\nfrom {name}.srun", f"\nfrom {name}.rankrun import RANKRUN\nfrom {name}.srun")
    table = table.replace("    TORCHRUN,\n", "    TORCHRUN,\n    RANKRUN,\n", 1)
    (folder / "__init__.py").write_text(table)
    return tmp_path


def used(tree: Path, *argv: str) -> Any:
    ran = subprocess.run([sys.executable, "-c", *argv], cwd=tree, capture_output=True, text=True, timeout=300)
    assert ran.returncode == 0, ran.stderr
    return json.loads(ran.stdout)


def test_a_new_launcher_is_one_file_and_one_row(tree: Path) -> None:
    shown = [
        "rankrun",
        "--hosts=2",
        "--per-host",
        "8",
        "--host_number",
        "1",
        "--head",
        "node1",
        "t.py",
    ]
    assert used(tree, USE) == {
        "program": "t.py",
        "agent": [[2, 2], 16, 8, 1],
        "master": ["node1", "4000", "--head"],
        "by node": True,
        "kept": shown,
        "on the host": "p 7 1 0\ne RR_JOB=7\na\t" + "\t".join(shown) + "\n",
        "looked for": True,
        "rank": [9, 16, "node1"],
        "variables": [*[True] * 5, False, False],
        "seat": ["RR_RANK", 9, 16, ["node1"]],
        "own": [True] * 5,
        "form": "rankrun",
        "lines": "rankrun --hosts=2 --per-host=$NPROC_PER_NODE --host-number=$NODE_RANK"
        " --head=10.0.0.1 --port=4001\n",
        "notes": [
            "the line is for every host: NODE_RANK is 0 on node1, 1 on node2",
            "hosts have different numbers of ranks: NPROC_PER_NODE is 8 on node1, 4 on node2",
        ],
    }
    assert NUMBERS.keys() & {"RR_RANK"} == set(), "this tree does not have it"


def test_hang_and_the_hook_know_it_as_well(tree: Path) -> None:
    """Its ranks run, and an agent finds them."""
    (tree / "rankrun").write_text(RANKRUN)
    argv = [sys.executable, "rankrun", "--hosts=1", "--per-host=2", "--head=node1", "train.py"]
    launcher = psutil.Popen(argv, cwd=tree)
    try:
        while len(launcher.children()) < 2:
            time.sleep(0.05)
        assert used(tree, HANG, str(launcher.pid)) == {
            "ranks": [[rank, 2, "node1:4000 run 7", "rankrun", None] for rank in (0, 1)],
            "here": [9, 16],
            "in the archive": True,
        }
    finally:
        for process in (*launcher.children(), launcher):
            process.kill()
        launcher.wait()
