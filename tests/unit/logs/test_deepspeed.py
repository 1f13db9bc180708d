"""DeepSpeed's launcher: how a rank ended; ranks that it ends afterwards are not at fault."""

from pathlib import Path

from doctor.logs.model import LogOutcome
from tests.support.cases import cases, from_cases
from tests.support.each import each
from tests.support.fault_logs import written

KILLING = "[2026-11-20 21:00:00,120] [INFO] [launch.py:319:sigkill_handler] Killing subprocess 424{}"
ARGUMENTS = ", ".join(f"'--option{number}', 'value'" for number in range(90))
ENDED = from_cases(__file__, "ENDED", str)


@each("arguments", ["", f", {ARGUMENTS}"])
@cases
def test_a_rank_that_ended_is_named_but_not_by_the_command_that_was_started_last(
    code: int, symptom: str, outcome: LogOutcome, arguments: str, tmp_path: Path
) -> None:
    found = written(tmp_path, KILLING.format(1), KILLING.format(2), ENDED.format(arguments, code))
    assert (found.outcome, found.charges[0].symptom) == (outcome, symptom)
    assert "rank=3" not in found.charges[0].says
    assert "rank 3" not in found.charges[0].says
    assert f"return code = {code}" in found.charges[0].lines[0].text


def test_all_hosts_of_pdsh_are_known(tmp_path: Path) -> None:
    early = [f"node-1: step {number} of 100" for number in range(60)]
    late = [f"node-{host}: {ENDED.format('', 1)}" for host in (1, 2)]
    assert "node-[1-2]" in written(tmp_path, *early, *late).charges[0].says.replace(
        "node-1 and node-2", "node-[1-2]"
    )


def test_ended_ranks_alone_are_no_cause(tmp_path: Path) -> None:
    found = written(tmp_path, KILLING.format(1), KILLING.format(2))
    assert (found.outcome, found.charges[0].symptom) == (LogOutcome.UNKNOWN, "deepspeed-others-ended")
    assert "424" not in found.charges[0].says


@cases
def test_the_host_that_ssh_does_not_reach_is_named(line: str, tmp_path: Path) -> None:
    found = written(tmp_path, line)
    assert (found.outcome, found.charges[0].symptom) == (
        LogOutcome.NAMED,
        "mpi-ssh-login" if "denied" in line else "mpi-ssh",
    )
    assert found.charges[0].says.startswith("node9: ")


def test_the_exception_above_the_launchers_lines_is_shown(tmp_path: Path) -> None:
    trace = ("Traceback (most recent call last):", '  File "/app/train.py", line 12, in <module>', "    go()")
    found = written(tmp_path, *trace, "KeyError: 'labels'", KILLING.format(1), ENDED.format("", 1))
    assert ["KeyError: 'labels'" in line.text for line in found.odd] == [True]


def test_the_scheduler_that_kills_a_rank_is_the_cause(tmp_path: Path) -> None:
    limit = "slurmstepd: error: *** JOB 7 ON n1 CANCELLED AT 2026-11-20T07:22:27 DUE TO TIME LIMIT ***"
    found = written(tmp_path, limit, KILLING.format(1), ENDED.format("", -9))
    assert found.charges[0].symptom == "slurm-time-limit"
