"""The script in docs/job-scripts.md that stops only for a fault does what the page says."""

import os
import re
import subprocess
from pathlib import Path

import pytest

from tests.support.paths import ROOT

(SCRIPT,) = re.findall(
    r"^```bash\n(code=0\n.*?)^```", (ROOT / "docs/job-scripts.md").read_text(), re.M | re.S
)
ENDS = {0: 0, 1: 1, 2: 2, 3: 0, 70: 70, 124: 124, 127: 127, 137: 137}


@pytest.mark.parametrize("code", ENDS)
def test_it_starts_the_job_unless_there_is_a_fault_or_no_verdict(code: int, tmp_path: Path) -> None:
    (tmp_path / "doctor").write_text(f"#!/bin/sh\nexit {code}\n")
    (tmp_path / "doctor").chmod(0o755)
    done = subprocess.run(
        ["bash", "-eu", "-c", f"{SCRIPT}echo started"],
        env={**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (done.returncode, done.stdout) == (ENDS[code], "started\n" if ENDS[code] == 0 else "")
    assert bool(done.stderr) is (code == 3)
