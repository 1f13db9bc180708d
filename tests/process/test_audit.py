"""The audit in the gate fails for a known vulnerability, and where it is required, also if it cannot look."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.cases import cases
from tests.support.paths import ROOT


def audit(answer: str | None, code: int, said: str, folder: Path, required: str) -> None:
    if answer is not None:
        (folder / "answer").write_text(answer)
        tool = folder / "pip-audit"
        tool.write_text(f"#!/bin/sh\nexec /bin/cat '{folder}/answer'\n")
        tool.chmod(0o700)
    ran = subprocess.run(
        [sys.executable, ROOT / "scripts" / "audit"],
        env={**os.environ, "PATH": str(folder), "AUDIT": required},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert (ran.returncode, ran.stderr) == (code, "")
    assert said in ran.stdout


@cases
def test_what_the_audit_says(answer: str | None, code: int, said: str, tmp_path: Path) -> None:
    audit(answer, code, said, tmp_path, "")


@pytest.mark.parametrize(("answer", "said"), [(None, "no pip-audit"), ("no network", "not be fetched")])
def test_where_it_is_required_it_has_to_look(answer: str | None, said: str, tmp_path: Path) -> None:
    audit(answer, 1, said, tmp_path, "required")
    sound = '{"dependencies": [{"name": "rich", "version": "1", "vulns": []}]}'
    audit(sound, 0, "no known vulnerability", tmp_path, "required")
