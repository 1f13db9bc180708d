"""When a command is started again."""

import pytest

from doctor.exam.request import ExamFlags, Request
from doctor.run.before import BeforeStart
from doctor.run.options import RunWishes
from doctor.run.reason import EndReason
from doctor.run.run import RestartingRun

BAD = EndReason(True, "node2 lost its link", cause="link-lost", blamed=("node2",))
SCRIPT = EndReason(True, "an exception", cause="exception")
HOSTS = ("node1", "node2", "node3")


def run(*words: str, restarts: int = 1, need: int | None = None) -> RestartingRun:
    request = Request("run", what=ExamFlags(need_hosts=need))
    made = RestartingRun(words or ("x", "{hosts}"), request, RunWishes(restarts=restarts))
    made._before = BeforeStart(0, None, HOSTS)
    return made


def test_without_the_host_that_ended_it(capsys: pytest.CaptureFixture[str]) -> None:
    made = run()
    assert made._again(BAD)
    assert made._request.who.exclude == ("node2",)
    assert capsys.readouterr().err == "doctor: the command is started again without node2.\n"


def test_never_more_often_than_asked_for() -> None:
    made, other = run(restarts=1), EndReason(True, "", cause="link-lost", blamed=("node3",))
    assert made._again(BAD)
    assert not made._again(other)


def test_never_twice_for_the_same_cause_on_the_same_host() -> None:
    made = run(restarts=9)
    assert made._again(BAD)
    assert not made._again(BAD)
    assert made._again(EndReason(True, "", cause="link-lost", blamed=("node3",)))


def test_never_for_a_fault_of_the_script() -> None:
    assert not run()._again(SCRIPT)


def test_only_if_enough_hosts_are_left() -> None:
    assert not run(need=3)._again(BAD)
    assert run(need=2)._again(BAD)


def test_only_if_the_command_can_be_started_without_it() -> None:
    assert not run("mpirun", "-H", "node1,node2", "x")._again(BAD)
