"""The JSON of every kind of report fits the shipped schema, and its numbers add up."""

import pytest

from tests.support.envelopes import as_data, wrong
from tests.support.reports import reports


@pytest.mark.parametrize("name", reports())
def test_json_fits_its_schema_and_adds_up(name: str) -> None:
    made, report = as_data(reports()[name]), reports()[name]
    assert wrong(made) == []
    findings, hosts, counted = made["findings"], made["hosts"], made["summary"]
    assert {f["because"] for f in findings} <= {None, *(f["id"] for f in findings)}
    assert {host for f in findings for host in f["hosts"]} <= {host["name"] for host in hosts}
    assert counted["hosts"] == counted["healthy"] + counted["faulty"] + counted["unexamined"] == len(hosts)
    assert (made["exit_code"], made["verdict"]) == (report.exit_code, report.verdict.value)
    assert made["headline"].endswith(".")
