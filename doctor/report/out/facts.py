"""The facts of all hosts as JSON, and as CSV that a spreadsheet cannot take for formulas."""

import csv
import io
from typing import Any

import msgspec
from msgspec.structs import astuple

from doctor import __version__
from doctor.judge.fact_table import FactRow, facts_of_host
from doctor.judge.verdict import Report
from doctor.rules.accept import CollectiveRate, collective_rates
from doctor.text.printable import clean_line, escaped

SCHEMA = 1
_FORMULA = tuple("=+-@\t\r＝＋－＠")
"""A spreadsheet takes a text that begins with one of these for a formula."""


def facts_json(report: Report) -> bytes:
    """The report with the facts; it has no verdict, because facts are not judged."""
    silent = report.silent
    data = {
        "schema": SCHEMA,
        "tool": {"name": "cluster-doctor", "version": __version__},
        "run": {"started": report.run.started, "transport": report.run.transport},
        "facts": [{"key": row.key, "title": row.title, "area": row.area} for row in report.seen.facts],
        "hosts": [
            {
                "name": host.name,
                "address": host.address,
                "reason": silent.get(host.name),
                "facts": facts_of_host(report.seen.facts, host.name),
                "odd": _odd(report, host.name),
            }
            for host in report.hosts
        ],
    }
    return escaped(msgspec.json.format(msgspec.json.encode(data).decode(), indent=1)).encode() + b"\n"


def facts_csv(report: Report) -> bytes:
    """One line per host. The cell of a fact that the host did not report is empty."""
    silent = report.silent
    out = io.StringIO()
    table = csv.writer(out, lineterminator="\n")
    table.writerow(["host", "address", *(row.key for row in report.seen.facts), "odd", "reason"])
    for host in report.hosts:
        values = (_value_or_words(row, host.name) for row in report.seen.facts)
        cells = (host.name, host.address, *values, _odd(report, host.name), silent.get(host.name, ""))
        table.writerow([_cell(value) for value in cells])
    return out.getvalue().encode()


def collectives_csv(report: Report) -> bytes:
    """One line for each size of a collective of the first run."""
    out = io.StringIO()
    rows = (astuple(each) for run in report.training.runs[:1] for each in collective_rates(run))
    csv.writer(out, lineterminator="\n").writerows([CollectiveRate.__struct_fields__, *rows])
    return out.getvalue().encode()


def _value_or_words(row: FactRow, host: str) -> Any:
    value = row.values.get(host)
    return row.shown.get(host, "") if value in (None, "") else value


def _odd(report: Report, host: str) -> list[str]:
    return [row.key for row in report.seen.facts if host in row.odd]


def _cell(value: Any) -> str | int | float:
    if isinstance(value, int | float):
        return value
    text = "; ".join(map(str, value)) if isinstance(value, list) else str(value)
    text = clean_line(text)
    return f"'{text}" if text.lstrip().startswith(_FORMULA) or text.startswith(_FORMULA) else text
