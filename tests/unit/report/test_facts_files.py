"""The facts as CSV and JSON: complete, plain, and harmless to a spreadsheet."""

import csv
import io
import json

import pytest

from doctor.judge.fact_table import COLUMNS
from doctor.judge.verdict import Report
from doctor.report.out.facts import facts_csv, facts_json
from tests.support.recordings import heard, recording, report
from tests.support.reports import reports
from tests.unit.report.test_hostile import HOSTILE, hostile_report, unsafe

NAMES = ["node1", "node2", "node3"]


def rows(of: Report) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(facts_csv(of).decode())))


def named(interpreter: str) -> Report:
    """The second of three hosts has an interpreter of this name."""
    python = f"python 3.11.2 {interpreter}\n"
    return report(recording(NAMES, heard={"node2": heard(2, NAMES, python=python)}))


def test_csv_has_a_line_a_host_and_a_column_a_fact() -> None:
    first, second, third = rows(named("/opt/python"))
    assert [first["host"], second["host"], third["host"]] == NAMES
    assert first["somaxconn"] == "4096"
    assert first["devices"] == "0"
    assert first["torch"] == "not installed"
    assert (second["python_path"], second["odd"]) == ("/opt/python", "python_path")
    assert first["odd"] == ""


def test_csv_of_hosts_that_did_not_answer_has_the_reason_and_no_values() -> None:
    lost = rows(reports()["unreachable"])[3]
    assert lost.pop("host") == "node4"
    assert lost.pop("reason") == "connection refused on port 22"
    lost.pop("address")
    assert set(lost.values()) == {""}


@pytest.mark.parametrize("begin", ["=", "+", "-", "@", "＝", " =", "\t=", "\u00a0="])
def test_csv_has_no_formulas(begin: str) -> None:
    """A cell that begins like a formula gets an apostrophe in front."""
    told = rows(named(f'{begin}HYPERLINK("http://x","y")'))[1]["python_path"]
    assert told.startswith("'")
    assert told.lstrip("'\t \u00a0").startswith(begin.strip())


def test_numbers_stay_numbers() -> None:
    ahead = {"clock": "1795167474.000", "clock-end": "1795167474.500"}
    made = report(recording(NAMES, heard={"node2": heard(2, NAMES, **ahead)}))
    assert rows(made)[1]["clock_offset_seconds"] == "-1.0"


def test_json_has_the_facts_of_each_host_and_no_verdict() -> None:
    data = json.loads(facts_json(named("/opt/python")))
    assert list(data) == ["schema", "tool", "run", "facts", "hosts"]
    keys = [fact["key"] for fact in data["facts"]]
    assert keys == [column.key for column in COLUMNS if column.key in keys]
    assert data["hosts"][1]["facts"]["python_path"] == "/opt/python"
    assert data["hosts"][1]["odd"] == ["python_path"]
    assert "healthy" not in facts_json(named("/opt/python")).decode()


def test_hostile_text_breaks_neither() -> None:
    made = hostile_report(HOSTILE)
    assert unsafe(facts_csv(made).decode()) == []
    assert [row["host"] for row in rows(made)] == ["node1", "node2", "node3"]
    assert unsafe(facts_json(made).decode()) == []
    assert [host["name"] for host in json.loads(facts_json(made))["hosts"]] == ["node1", "node2", "node3"]
