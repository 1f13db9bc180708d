"""The page about all attempts of a job."""

from __future__ import annotations

from functools import partial

from doctor.report.html.page import as_html
from doctor.report.terminal.cards import print_page
from doctor.run.attempts_page import attempts_page
from doctor.run.envelope import AttemptEntry, JobLookEntry
from doctor.text.console import drawn
from tests.support.cases import from_cases

NODES = ("node1", "node2", "node3")
HUNG = JobLookEntry("hang", "rank 1 on node1 sleeps.")
LOST = AttemptEntry(
    hosts=NODES,
    left_out=(),
    seconds=3723.0,
    exit_code=1,
    looks=(HUNG,),
    why="rank 3 on node2 was killed by the kernel for lack of memory",
    folder="/home/ada/doctor-runs/doctor-20261120T100000Z-7/attempt-1",
)
SHOWN = from_cases(__file__, "SHOWN", str)


def test_each_attempt_and_where_its_reports_are() -> None:
    well = AttemptEntry(hosts=("node1", "node3"), left_out=("node2",), seconds=0.4, exit_code=0)
    page = attempts_page([LOST, well], "2026-11-20T10:00:00Z")
    assert drawn(partial(print_page, page), 80, colour=False) == SHOWN
    html = as_html(page).decode()
    assert "attempt-1/" in html
    assert "killed by the kernel" in html


def test_one_that_doctor_ended_and_one_that_could_not_be_started() -> None:
    ended = AttemptEntry(hosts=NODES, left_out=(), seconds=60.0, exit_code=143, ended="rank 1 sleeps.")
    absent = AttemptEntry(hosts=NODES, left_out=(), seconds=0.0, exit_code=None)
    text = drawn(partial(print_page, attempts_page([ended, absent], "")), 80, colour=False)
    assert "FAIL  attempt 1  ended by doctor, after 1 min" in text
    assert "FAIL  attempt 2  not started" in text
