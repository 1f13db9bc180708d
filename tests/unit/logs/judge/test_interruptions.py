"""Ctrl-C: the report says what each rank did then; ranks that were not where the others waited are only
suspects.
"""

from pathlib import Path

import pytest

from doctor.logs.explanation import Explanation, why_unknown
from doctor.logs.model import LogOutcome
from doctor.model import Confidence
from tests.support.fault_logs import JOBS, concluded, pasted

CTRL_C = JOBS / "loopback/ctrlc/train.log"


@pytest.mark.parametrize("name", ["ctrlc", "ctrlc-tee"])
def test_who_was_not_in_the_collective_is_a_suspect(name: str) -> None:
    said = concluded(JOBS / "loopback" / name)
    first = said.charges[0]
    assert [each.rank for each in first.who] == [2]
    assert first.confidence is Confidence.SUSPECT
    assert "somebody ended the job with Ctrl-C" in first.says
    assert "waited (ranks 0-1, 3 in all_reduce)" in first.says
    assert "rank 2: train.py:38, in wait_for_data" in first.how
    assert said.outcome is LogOutcome.NAMED


def test_nobody_is_suspected_of_a_job_that_was_busy() -> None:
    said = concluded(JOBS / "loopback/ctrlc-busy")
    assert said.outcome is LogOutcome.UNKNOWN
    assert said.charges[0].says == "somebody ended the job with Ctrl-C"
    assert said.charges[0].how == ("ranks 0-3: train.py:25, in main",)
    assert said.odd == ()
    assert said.open == ()
    assert why_unknown(Explanation(said)).startswith("Somebody ended the job")


def test_a_job_that_logged_a_step_just_before_did_not_hang(tmp_path: Path) -> None:
    lines = CTRL_C.read_text().replace("step ", "2026-11-22 01:00:56,900 step ")
    steps = "".join(f"2026-11-22 01:00:{second},900 step {second} loss 0.3\n" for second in range(40, 56))
    said = pasted(tmp_path, steps + lines)
    assert said.outcome is LogOutcome.UNKNOWN
    assert said.charges[0].who == ()


def test_what_came_before_ctrl_c_comes_first(tmp_path: Path) -> None:
    before, told, after = CTRL_C.read_text().partition("W1122 01:00:57.147000")
    error = "[rank3]: ValueError: shard 0017 is empty"
    failed = f'[rank3]: Traceback (most recent call last):\n[rank3]:   File "a.py", line 3, in f\n{error}\n'
    after = "".join(line for line in after.splitlines(keepends=True) if not line.startswith("[rank3]"))
    said = pasted(tmp_path, before + failed + told + after)
    assert [each.rank for each in said.charges[0].who] == [3]
    assert "shard 0017" in said.charges[0].says
