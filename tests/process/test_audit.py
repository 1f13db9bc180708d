"""The audit in the gate fails for a known vulnerability, and for nothing else."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.support.cases import cases
from tests.support.paths import ROOT

UNKNOWN = '{"dependencies": [{"name": "rich", "skip_reason": "it was not found"}]}'


@cases
def test_what_the_audit_says(answer: str | None, code: int, said: str, tmp_path: Path) -> None:
    if answer is not None:
        (tmp_path / "answer").write_text(answer)
        tool = tmp_path / "pip-audit"
        tool.write_text(f"#!/bin/sh\nexec /bin/cat '{tmp_path}/answer'\n")
        tool.chmod(0o700)
    ran = subprocess.run(
        [sys.executable, ROOT / "scripts" / "audit"],
        env={**os.environ, "PATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert (ran.returncode, ran.stderr) == (code, "")
    assert said in ran.stdout
