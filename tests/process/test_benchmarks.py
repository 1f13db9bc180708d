"""What the benchmarks time is still where they look for it."""

import json
import subprocess
import sys

from benchmarks.split import MARK


def test_each_step_of_a_run_is_found() -> None:
    command = [sys.executable, "-m", "benchmarks.split", "check", "--local", "--exam", "host", "-q"]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    spent = next((line for line in ran.stderr.splitlines() if line.startswith(MARK)), "{}").removeprefix(MARK)
    assert json.loads(spent).get("probe", 0) > 0, ran.stderr
