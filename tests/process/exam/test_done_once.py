"""A whole preflight drafts and settles its plan, judges its smoke run and parses each fact only once."""

import importlib.util
import json
import subprocess
import sys

import pytest

from tests.support.cases import from_cases
from tests.support.commands import environment

COUNTING = from_cases(__file__, "COUNTING", str)


@pytest.mark.skipif(
    importlib.util.find_spec("torch") is None, reason="no torch in the interpreter of the tests"
)
def test_a_preflight_drafts_settles_and_judges_once() -> None:
    options = ["--local", "--python", sys.executable, "--ranks-per-host", "2", "--steps", "5"]
    ran = subprocess.run(
        [sys.executable, "-c", COUNTING, "preflight", *options],
        capture_output=True,
        text=True,
        timeout=200,
        env=environment(),
        check=False,
    )
    counted = json.loads(ran.stdout)
    assert counted.pop("code") in (0, 1), ran.stderr
    assert {name: counted[name] for name in ("draft", "settle", "judge")} == dict.fromkeys(
        ("draft", "settle", "judge"), 1
    )
    assert len(counted) > 20, "facts were parsed"
    assert set(counted.values()) == {1}, counted
