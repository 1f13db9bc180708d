"""The reason, not its wrapper; who stands apart; what all ranks say; and what is no job's at all."""

from pathlib import Path

import pytest

from tests.support.cases import from_cases
from tests.support.fault_logs import pasted

LOGS = from_cases(__file__, "LOGS", dict[str, dict[str, str]])


@pytest.mark.parametrize("name", LOGS)
def test_what_is_said(name: str, tmp_path: Path) -> None:
    case = LOGS[name]
    found = pasted(tmp_path, case["log"])
    first = next((each for each in found.charges if each.because is None), None)
    said = f"{first.says}\n" + "\n".join(first.remedy.commands if first.remedy else ()) if first else ""
    assert found.outcome.value == case["outcome"]
    assert (first.symptom or "" if first else "") == case.get("symptom", "")
    assert case.get("says", "") in said
    assert case.get("not", "no such text") not in "\n".join(each.says for each in found.charges)
    assert len([each for each in found.charges if each.because is None]) == int(
        case.get("causes", "1" if first else "0")
    )


BACKWARDS = from_cases(__file__, "BACKWARDS", dict[str, str])


@pytest.mark.parametrize("name", BACKWARDS)
def test_what_came_long_before_a_cause_does_not_follow_from_it(name: str, tmp_path: Path) -> None:
    found = pasted(tmp_path, BACKWARDS[name])
    follow = [each.symptom for each in found.charges if each.because is not None]
    assert follow == (["kernel-peermem"] if name == "later" else [])


RESUMED = from_cases(__file__, "RESUMED", dict[str, str])


@pytest.mark.parametrize("name", RESUMED)
def test_a_job_that_was_started_again_and_finished_did_not_fail(name: str, tmp_path: Path) -> None:
    found = pasted(tmp_path, RESUMED[name])
    again = name.startswith("again")
    assert found.outcome.value == ("clean" if again else "named")
    assert len(found.beside) == again


LATE = (
    "[rank0]:[E1129 12:10:00.1 ProcessGroupNCCL.cpp:688] [PG ID 0 PG GUID 0(default_pg) Rank 0] Watchdog "
    "caught collective operation timeout: WorkNCCL(SeqNum=9, OpType=ALLREDUCE, NumelIn=1, NumelOut=1, "
    "Timeout(ms)=600000) ran for 600012 milliseconds before timing out.\n"
)
KILLED = {"python train.py": "supervisor-shell-saw", "torchrun train.py": "torch-nccl-watchdog"}


@pytest.mark.parametrize("program", KILLED)
def test_a_launcher_that_was_killed_after_the_time_outs_is_not_their_cause(
    program: str, tmp_path: Path
) -> None:
    """A shell tells of a killed program when it waits for it, which may be late."""
    said = f"step 1/100 loss 2.0\n{LATE}run.sh: line 12:  4242 Killed                  {program}\n"
    assert pasted(tmp_path, said).charges[0].symptom == KILLED[program]
