"""Short excerpts of many programs: each is told by its symptom, and sound lines that look alike are not."""

from pathlib import Path

import pytest

from doctor.logs.model import LogOutcome
from doctor.model import UNDECIDED, Confidence
from tests.support.cases import cases, from_cases
from tests.support.fault_logs import written

GROUP_FINISHED = from_cases(__file__, "GROUP_FINISHED", list[str])
CAUGHT = from_cases(__file__, "CAUGHT", list[str])
TABLE = from_cases(__file__, "TABLE", str)
TABLE_OF_ONE = from_cases(__file__, "TABLE_OF_ONE", str)
SOUND = from_cases(__file__, "SOUND", list[list[str]])
UCX = from_cases(__file__, "UCX", list[str])


@cases
def test_a_cause_is_named(lines: list[str], symptom: str, tmp_path: Path) -> None:
    said = written(tmp_path, *lines)
    assert (said.outcome, said.charges[0].symptom) == (LogOutcome.NAMED, symptom)


@cases
def test_what_is_no_cause_is_told_without_an_accusation(
    lines: list[str], symptom: str, tmp_path: Path
) -> None:
    said = written(tmp_path, *lines)
    assert said.outcome is not LogOutcome.CLEAN
    assert said.charges[0].symptom == symptom
    assert not any(each.who for each in said.charges)


@pytest.mark.parametrize("lines", SOUND, ids=lambda lines: lines[0][:40])
def test_sound_lines_that_look_alike(lines: list[str], tmp_path: Path) -> None:
    said = written(tmp_path, *lines)
    assert said.outcome is LogOutcome.CLEAN


def test_torchrun_whose_ranks_all_ended_well_acquits_what_they_caught(tmp_path: Path) -> None:
    assert written(tmp_path, *CAUGHT, *GROUP_FINISHED).outcome is LogOutcome.CLEAN
    assert written(tmp_path, *CAUGHT).outcome is LogOutcome.NAMED
    assert written(tmp_path, *GROUP_FINISHED, *CAUGHT).outcome is LogOutcome.NAMED
    uncaught = [f"[rank9]: {line}" for line in CAUGHT]  # torch tags what ends a rank: that of another node
    assert written(tmp_path, *uncaught, *GROUP_FINISHED).outcome is LogOutcome.NAMED


def test_a_kill_is_compared_with_the_first_failure_of_its_own_table(tmp_path: Path) -> None:
    """torchrun of one node does not kill ranks of another."""
    table = TABLE_OF_ONE.splitlines()
    other = [
        line.replace("10:00:00", "10:00:50")
        .replace("node1", "node2")
        .replace("rank      : 1", "rank      : 8")
        for line in table
    ]
    killed = [line.replace("exitcode  : 1", "exitcode  : -9") for line in other]
    said = written(tmp_path, *table, *killed)
    ranks = {party.rank for each in said.charges if each.because is None for party in each.who}
    assert 8 in ranks


@pytest.mark.parametrize(("killed_at", "guilty"), [("10:00:31", 1), ("10:00:00", 0), ("10:04:00", 0)])
def test_whom_torchrun_killed_after_its_time_is_no_suspect(
    killed_at: str, guilty: int, tmp_path: Path
) -> None:
    said = written(tmp_path, *TABLE.replace("KILLED", killed_at).splitlines())
    causes = [each for each in said.charges if each.because is None]
    ranks = {party.rank for each in causes for party in each.who}
    assert guilty in ranks
    assert (0 in ranks) is (guilty == 0)


def test_an_end_of_a_link_without_the_other_is_not_named(tmp_path: Path) -> None:
    said = written(tmp_path, *UCX)
    assert (said.charges[0].confidence, said.charges[0].who) == (Confidence.SUSPECT, ())
    both = written(tmp_path, UCX[0], UCX[1].replace("SEND s-e [va", "SEND s-e [rqpn 0x1 rlid 703] [va"))
    assert UNDECIDED in both.charges[0].says


def test_the_reason_of_a_batch_system_comes_before_its_cancelling(tmp_path: Path) -> None:
    lines = ["Job deleted at request of root@sched1", "MOAB_INFO:  job exceeded wallclock limit"]
    assert written(tmp_path, *lines).charges[0].symptom == "scheduler-time-limit"
