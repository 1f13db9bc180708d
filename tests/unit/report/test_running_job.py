"""A report's first lines name the hosts on which a job is running, and the command that looks into it. Such a
job decides nothing, unless it is the one that is examined.
"""

from dataclasses import replace
from typing import Any

import pytest

from doctor.exam.request import JobFlags, Request
from doctor.exam.way import retyped, way_to
from doctor.job.wishes import SLURM, JobWishes
from doctor.judge.examine import build_report
from doctor.judge.playbook import load_exam, load_remedies, select
from doctor.judge.reading import read_recording
from doctor.judge.registry import find_checks
from doctor.judge.verdict import Report
from doctor.model import SourcedValue, Status
from doctor.recording import Recording
from tests.support.recordings import heard, recording, report, syllabus
from tests.support.reports import text

NAMES = ["node1", "node2", "node3"]


def jobs(*ranks: int, port: int = 29677, **more: str | int) -> str:
    """Ranks of a job of two, as a host prints them."""
    env = {"WORLD_SIZE": 2, "MASTER_ADDR": "10.0.0.2", "MASTER_PORT": port, **more}
    lines = "".join(f"e {name}={value}\n" for name, value in env.items())
    each = (f"p {n} 1 0\ne RANK={rank}\n{lines}a\tpython3\ttrain.py\n" for n, rank in enumerate(ranks, 812))
    return "jobs\n" + "".join(each)


def runs(said: str, **more: Any) -> Recording:
    return recording(NAMES, heard={f"node{n}": heard(n, NAMES, job_processes=said) for n in (2, 3)}, **more)


RUNNING = runs(jobs(0))
WRONG = {
    "a rank twice": jobs(1, 1),
    "an impossible rank": jobs(0, 7),
    "an impossible master": jobs(0, MASTER_ADDR="tcp://node2"),
    "a loopback master": jobs(0, MASTER_ADDR="127.0.0.1"),
    "times that do not fit": jobs(0, HCCL_CONNECT_TIMEOUT=1),
    "another port than the plan's": jobs(0, port=99),
}


def test_where_a_job_runs_and_what_looks_into_it() -> None:
    lines = text(report(RUNNING), 200).splitlines()
    assert lines[1:3] == ["a job runs on node[2-3]: doctor hang 'node[2-3]' says whether it hangs", ""]


def test_silence_where_none_runs() -> None:
    assert "doctor hang" not in text(report(recording(NAMES)), 200)


def test_a_job_that_examines_itself_is_not_told_of_itself() -> None:
    assert "doctor hang" not in text(report(replace(RUNNING, transport="in-job")), 200)


ALLOCATION = JobWishes(ranks_per_host=SourcedValue(8, SLURM))


@pytest.mark.parametrize("exam", ["preflight", "host", "full", "node"])
@pytest.mark.parametrize("wishes", [JobWishes(), ALLOCATION], ids=["no job", "an allocation"])
@pytest.mark.parametrize("name", WRONG)
def test_a_job_that_only_runs_there_decides_nothing(name: str, wishes: JobWishes, exam: str) -> None:
    checks = find_checks().checks
    known = load_exam(exam, checks)
    asked = syllabus(select(checks, known, (), (), smoke=False)[0], known)
    beside, alone = (
        build_report(read_recording(replace(of, wishes=wishes, exam=exam)), asked, load_remedies())
        for of in (runs(WRONG[name]), recording(NAMES))
    )
    assert (beside.findings, beside.exit_code, beside.plan) == (alone.findings, alone.exit_code, alone.plan)
    assert text(beside, 200).count("a job runs on") == 1


def test_the_same_job_if_it_is_named() -> None:
    named = report(runs(WRONG["a rank twice"], wishes=JobWishes(live=True)))
    (finding,) = [each for each in named.findings if each.status is Status.FAIL]
    assert (finding.check, finding.hosts) == ("launch-ranks", ("node2", "node3"))
    assert named.plan.master_port == SourcedValue(29677, "the running job")
    way = way_to(Request("check", job=JobFlags(launch=("live",))))
    assert way.asked == (("--launch", "live"),)
    assert way.typed("check", NAMES, job=True) == "doctor check 'node[1-3]' --launch live"
    assert retyped(Request("check"), way.asked).job.launch == ("live",)


def test_a_job_that_is_named_and_does_not_run() -> None:
    """What was not looked at is not called healthy."""
    named = report(recording(NAMES, wishes=JobWishes(live=True)))
    assert _why(named) == "launches: no job of this user runs on these hosts"
    unread = runs("grep: unrecognized option", wishes=JobWishes(live=True))
    assert "the processes on node2 could not be read" in _why(report(unread))


def _why(of: Report) -> str:
    (reason,) = {each.reason for each in of.results if each.check == "launch-ranks"}
    return reason or ""
