"""A file that has the output of the command and the words of doctor, as a batch script's."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.cases import from_cases
from tests.support.paths import ROOT

CODE = from_cases(__file__, "CODE", str)


@pytest.mark.parametrize("mode", ["wb", "ab"])
def test_its_own_words_are_not_the_commands(mode: str, tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text("before\n")
    with open(log, mode) as file:
        words = [sys.executable, "-c", CODE, str(tmp_path)]
        subprocess.run(words, stdout=file, stderr=file, cwd=ROOT, check=True, timeout=60)
    assert log.read_text().count("HANG") == 3
    said = (tmp_path / "said").read_text()
    steps = [b"step", b"1", b"loss", b"2.0", b"step", b"2", b"loss", b"1.9"]
    assert said == f"{[True, False, False, False, True, False]} {steps}\n"
