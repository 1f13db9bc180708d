"""Horovod's stalls name the ranks that did not come; jobs that continued after a stall are healthy."""

from pathlib import Path

import pytest

from doctor.logs.model import LogOutcome
from tests.support.cases import from_cases
from tests.support.fault_logs import concluded, pasted

SAID = from_cases(__file__, "SAID", str)
HEAD = "[2020-12-30 16:35:15.181832: W horovod/common/stall_inspector.cc:105] " + SAID
NEW = f"{HEAD}\nMissing ranks:\n1: [Allreduce_0, Allreduce_1]\n3: [Allreduce_0]\n"
NEWER = f"{HEAD}\nStalled ranks:\n1!: [Allreduce_0, Allreduce_1]\n3: [Allreduce_0]\n"
TAGGED = "".join(f"[1,0]<stderr>:{line}\n" for line in NEW.splitlines())
GLOO = "".join(f"[0]<stderr>:{line}\n" for line in NEW.splitlines())
OLD = f"WARNING: {SAID}\nStalled ops:\nBroadcast_0 [missing ranks: 1, 3]\nBroadcast_1 [missing ranks: 1, 3]\n"
BAR = f"T: 82% 1025/1252 [35:04<13:48,  3.65s/it]WARNING: {SAID}Stalled ops:a [ready ranks: 0, 2, 4]\n"
STEPS = "".join(f"step {each} loss 0.5\n" for each in range(40, 60))


@pytest.mark.parametrize(
    "text", [NEW, NEWER, TAGGED, GLOO, OLD, BAR], ids=["new", "newer", "mpi", "gloo", "old", "bar"]
)
def test_the_ranks_that_did_not_come_are_named(text: str, tmp_path: Path) -> None:
    first = pasted(tmp_path, "step 39 loss 0.5\n" + text).charges[0]
    assert (first.symptom, [each.rank for each in first.who]) == ("horovod-stall", [1, 3])


@pytest.mark.parametrize("text", [NEW, TAGGED, OLD], ids=["new", "mpi", "old"])
@pytest.mark.parametrize("prefix", ["", "[1,0]<stdout>:", "[1,2]<stdout>:"])
def test_a_job_that_went_on_is_healthy(text: str, prefix: str, tmp_path: Path) -> None:
    steps = "".join(f"{prefix}{line}\n" for line in STEPS.splitlines())
    assert pasted(tmp_path, text + steps).outcome is LogOutcome.CLEAN


def test_horovodrun_names_the_host_and_the_slot_that_ended(tmp_path: Path) -> None:
    (tmp_path / "job.log").write_text(
        "RuntimeError: Horovod detected that one or more processes exited with non-zero status, thus causing "
        "the job to be terminated. The first process to do so was:\nProcess name: node2[5]\nExit code: 137\n"
    )
    first = concluded(tmp_path / "job.log").charges[0]
    assert (first.symptom, [(each.host, each.rank) for each in first.who]) == (
        "horovod-worker-ended",
        [("node2", None)],
    )
    assert first.says == "a process on node2 (local rank 5) was killed (SIGKILL)"
