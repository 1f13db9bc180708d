"""What a real shell gives to the program that a launch script starts, where the script has a slip."""

import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.support.cases import from_cases

UNIT = Path(__file__).parents[1] / "unit" / "checks" / "test_launch_slips.py"
ALL = from_cases(str(UNIT), "test_a_variable_that_no_rank_gets", list[dict[str, Any]])
SLIPS = [slip for slip in ALL if slip["name"].isidentifier()]
"""Those of variables, not of options."""


@pytest.mark.parametrize("slip", SLIPS)
def test_the_program_does_not_get_the_variable(slip: dict[str, Any], tmp_path: Path) -> None:
    for name in ("python", "torchrun"):
        (tmp_path / name).write_text('#!/bin/sh\necho "$0 $*"\nenv\n')
        (tmp_path / name).chmod(0o755)
    shell = ["bash", "-c", slip["text"]]
    env = {"PATH": f"{tmp_path}:{os.environ['PATH']}"}
    given = subprocess.run(shell, env=env, capture_output=True, text=True).stdout
    assert "train.py" in given
    assert f"\n{slip['name']}=" not in given
    assert "=$" not in given
