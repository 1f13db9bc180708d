"""A report's first lines name the hosts on which a job is running, and the command that looks into it."""

from __future__ import annotations

import io
from dataclasses import replace

from rich.console import Console

from doctor.judge.verdict import Report
from doctor.report.text import print_report
from tests.support.recordings import heard, recording, report

NAMES = ["node1", "node2", "node3"]
RANK = "jobs\np 812 1 0\ne RANK=0\ne WORLD_SIZE=2\ne LOCAL_RANK=0\na\tpython3\ttrain.py\n"
RUNNING = recording(NAMES, heard={f"node{n}": heard(n, NAMES, job_processes=RANK) for n in (2, 3)})


def printed(of: Report) -> str:
    paper = io.StringIO()
    print_report(of, Console(file=paper, width=200))
    return paper.getvalue()


def test_where_a_job_runs_and_what_looks_into_it() -> None:
    lines = printed(report(RUNNING)).splitlines()
    assert lines[1:3] == ["a job runs on node[2-3]: doctor hang 'node[2-3]' says whether it hangs", ""]


def test_silence_where_none_runs() -> None:
    assert "doctor hang" not in printed(report(recording(NAMES)))


def test_a_job_that_examines_itself_is_not_told_of_itself() -> None:
    assert "doctor hang" not in printed(report(replace(RUNNING, transport="in-job")))
