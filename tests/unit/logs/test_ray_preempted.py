"""Whose process it is that ended, if another one reports it: Ray prints the fields of an actor below."""

from pathlib import Path

from tests.support.cases import from_cases
from tests.support.fault_logs import written

DIED = from_cases(__file__, "DIED", list[str])
PREEMPTED = "the actor's node was preempted: maintenance"


def test_the_worker_on_the_host_that_was_taken_away_is_named(tmp_path: Path) -> None:
    first = written(tmp_path, *DIED, f"(TrainController pid=4100)  {PREEMPTED}").charges[0]
    assert first.symptom == "ray-node-preempted"
    assert [(party.pid, party.host) for party in first.who] == [(4117, "10.0.0.9")]


def test_without_it_the_worker_that_died_is_named(tmp_path: Path) -> None:
    first = written(tmp_path, *DIED).charges[0]
    assert first.symptom == "ray-actor-died"
    assert "process 4117 on 10.0.0.9" in first.says
