"""A signal that arrives while an object is deleted, where Python loses it, ends the run all the same."""

import subprocess
import sys

import pytest

from tests.support.cases import from_cases
from tests.support.paths import ROOT

PROGRAM = from_cases(__file__, "PROGRAM", str)


@pytest.mark.parametrize("number", [2, 15])
def test_it_comes_again(number: int) -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(number)], capture_output=True, text=True, cwd=ROOT, timeout=30
    )
    assert (done.stdout, done.stderr) == (f"{number}\n", "")
