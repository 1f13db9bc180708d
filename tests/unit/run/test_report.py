"""The report of a run: the reports of its parts in one, in the form of all reports, with whose code it is."""

import json
from xml.etree import ElementTree as Xml

from doctor.report.files.envelope import EnvelopeRun
from doctor.run.end import read_end
from doctor.run.envelope import AttemptEntry, JobLookEntry, Whose
from doctor.run.report import around_report
from tests.support.cases import cases, cases_with
from tests.support.envelopes import as_data, as_json, as_junit, as_prometheus, wrong
from tests.support.hang.reports import NODES, ONE_SLEEPS
from tests.support.hang.written import evidence
from tests.support.logs.conclusions import explaineds
from tests.support.reports import reports
from tests.unit.test_envelope import means_the_same

RUN = EnvelopeRun(command="run", started="2026-11-20T09:00:00Z")
WELL, SICK = as_json(reports()["healthy"]), as_json(reports()["sick-hosts"])


def attempt(**more: object) -> AttemptEntry:
    given = {"hosts": ("node1",), "left_out": (), "seconds": 3.0, "exit_code": 0, **more}
    return AttemptEntry(**given)  # type: ignore[arg-type]


def test_a_healthy_job() -> None:
    data = as_data(around_report(RUN, 0, Whose.JOB, [attempt()], [WELL]))
    assert wrong(data) == []
    means_the_same(data)
    assert (data["verdict"], data["exit_code"], data["around"]["whose"]) == ("healthy", 0, "job")
    assert data["summary"] == json.loads(WELL)["summary"]


def test_the_preflight_said_no() -> None:
    made = around_report(RUN, 1, Whose.PREFLIGHT, [], [SICK])
    data, before = as_data(made), json.loads(SICK)
    means_the_same(data)
    assert (data["verdict"], data["around"]) == ("faulty", {"whose": "preflight", "attempts": []})
    assert data["headline"] == f"The command was not started. {before['headline']}"
    assert [each["headline"] for each in data["findings"]] == [
        each["headline"] for each in before["findings"]
    ]


def test_all_parts_are_in_it() -> None:
    """A restart: what ended the first attempt, and a hang in the second."""
    why, look = as_json(explaineds()["oom"]), as_json(evidence(ONE_SLEEPS, NODES, silent=100.0))
    first = attempt(exit_code=1, why="Named: node2: rank 3 was killed.")
    second = attempt(exit_code=1, looks=(JobLookEntry("hang", "rank 1 sleeps"),), ended="rank 1 sleeps")
    made = around_report(RUN, 75, Whose.ENDED, [first, second], [WELL, why, WELL, look])
    data = as_data(made)
    assert wrong(data) == []
    means_the_same(data)
    own = [len(json.loads(each)["findings"]) for each in (WELL, why, WELL, look)]
    assert len(data["findings"]) == sum(own)
    assert (data["verdict"], data["headline"]) == ("faulty", "doctor ended the job: rank 1 sleeps")
    (verdict, *_) = Xml.fromstring(as_junit(made)).iter("testcase")
    assert verdict.find("failure") is not None
    assert 'cluster_doctor_exit_code{command="run"} 75' in as_prometheus(made).decode()


@cases_with(attempt)
def test_an_end_that_is_nobodys_fault_is_inconclusive(last: AttemptEntry, headline: str) -> None:
    made = around_report(RUN, 7, Whose.JOB, [last], [WELL])
    assert (made.verdict.value, made.headline) == ("inconclusive", headline)


@cases
def test_what_slurm_says_about_the_end(line: str, why: str) -> None:
    assert read_end(f"JobId=7 JobName=x {line} Dependency=(null)") == why
