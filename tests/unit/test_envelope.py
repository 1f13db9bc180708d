"""The reports of all commands are of one form: that of the shipped schema, which docs/reference explains.

`UPDATE_DOCS=1 pytest` on this file writes its pages again.
"""

import contextlib
import gzip
import io
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from doctor import cli
from doctor.diff.envelope import DiffReport
from doctor.exam.demo import DEMOS, FOLDER, evidence_of
from doctor.hang.below import with_checks
from doctor.hang.envelope import HangReport
from doctor.hang.judge import judge
from doctor.hang.report import page_of
from doctor.hang.report_json import hang_report
from doctor.history.envelope import HistoryReport
from doctor.logs.envelope import LogsReport
from doctor.logs.report_json import logs_report
from doctor.model import Status
from doctor.report.files.envelope import Envelope
from doctor.report.files.json import CheckReport
from doctor.report.files.prometheus import PREFIX
from doctor.report.files.schema import schema_of
from doctor.report.html.page import as_html
from doctor.report.markdown.page import as_markdown
from doctor.report.out.shadow import ShadowLine
from doctor.report.page.card import CardKind
from doctor.report.page.headline import last_line
from doctor.run.envelope import RunReport
from doctor.slow.envelope import SlowReport
from tests.support.captures import SAMPLES
from tests.support.envelopes import Made, as_data, as_prometheus, schema, wrong
from tests.support.field_tables import field_pages
from tests.support.hang.reports import NODES, ONE_SLEEPS
from tests.support.hang.trials import trials
from tests.support.hang.written import evidence
from tests.support.logs.conclusions import explaineds
from tests.support.paths import ROOT
from tests.support.reports import reports
from tests.unit.report.test_junit import well_formed
from tests.unit.report.test_prometheus import parsed

REFERENCE = ROOT / "docs" / "reference"


def all_kinds() -> Iterator[tuple[str, Made]]:
    """Reports of every kind."""
    yield from reports().items()
    yield from explaineds().items()
    yield from ((f"hang {number}", trial.evidence) for number, trial in enumerate(trials()))


def commands(folder: Path) -> Iterator[tuple[str, ...]]:
    """Reports of all commands with everything that the samples hold."""
    for name in DEMOS:
        yield "demo", name
        (folder / name).write_bytes(gzip.decompress((FOLDER / f"{name}.run.json.gz").read_bytes()))
        yield "check", "--replay", str(folder / name)
    for path in sorted((SAMPLES / "logs").iterdir()):
        if path.is_dir():
            yield "explain", str(path)
    for name, command in (("loader", "hang"), ("slow", "slow")):
        kept = folder / f"{command}.json"
        kept.write_bytes(gzip.decompress(evidence_of(name).read_bytes()))
        yield command, "--replay", str(kept)
        yield "demo", name


def typed(*words: str) -> tuple[int, str]:
    with contextlib.redirect_stdout(io.StringIO()) as out, contextlib.redirect_stderr(io.StringIO()):
        code = cli.run(words)
    return code, out.getvalue()


def means_the_same(data: dict[str, Any]) -> None:
    """The parts that mean the same in every report, whichever command wrote it."""
    counted, hosts, findings = data["summary"], data["hosts"], data["findings"]
    assert data["schema"] == 2
    assert data["verdict"] != "healthy" or counted["faulty"] == counted["fail"] == 0
    for status in ("healthy", "faulty", "unexamined"):
        assert counted[status] == sum(host["status"] == status for host in hosts)
    assert {host for each in findings for host in each["hosts"]} <= {host["name"] for host in hosts}
    assert len({each["id"] for each in findings}) == len(findings)
    assert not {each["because"] for each in findings} - {None, *(each["id"] for each in findings)}
    rows = {(row["check"], row["status"]) for row in data["results"]}
    assert {(each["check"], each["status"]) for each in findings if each["status"] == "fail"} <= rows


def test_every_report_fits_the_schema_and_means_the_same() -> None:
    for name, each in all_kinds():
        data = as_data(each)
        assert (name, wrong(data)) == (name, [])
        means_the_same(data)


def test_the_checks_that_were_made_are_a_whole_report_within() -> None:
    sick, moving = reports()["sick-hosts"], evidence(["waits", "waits"], silent=0.1)
    hung, explained = hang_report(judge(moving), moving, sick), logs_report(explaineds()["oom"], sick)
    for made in (hung, explained):
        data = as_data(made)
        assert wrong(data) == []
        assert data["check"] == as_data(sick)
        assert (data["verdict"], data["exit_code"]) == ("faulty", 1)
    assert hung.hang.state == "moves"


@pytest.mark.parametrize("kind", ["sick-hosts", "healthy", "all-unreachable"])
@pytest.mark.parametrize("silent", [0.1, 100.0], ids=["moves", "hangs"])
def test_a_hang_and_its_checks_agree_in_every_format(kind: str, silent: float) -> None:
    """The verdict, the headline, the counts and the findings cover both, in JSON and on the page."""
    checked, seen = reports()[kind], evidence(ONE_SLEEPS, NODES, silent=silent)
    judgement = judge(seen)
    made, page = hang_report(judgement, seen, checked), with_checks(page_of(judgement), checked)
    data = as_data(made)
    assert wrong(data) == []
    means_the_same(data)
    faulty = 1 in (judgement.exit_code, checked.exit_code)
    assert (data["exit_code"] == 1) == faulty == (page.kind is CardKind.FAIL)
    assert data["headline"] == page.says
    assert last_line(checked) in data["headline"]
    assert judgement.sentence in data["headline"]
    own, alone = as_data(seen), as_data(checked)
    for status in ("fail", "warn", "unknown", "crash", "checks"):
        assert data["summary"][status] == own["summary"][status] + alone["summary"][status]
    summaries = [each["summary"] for each in (*own["findings"], *alone["findings"])]
    assert [each["summary"] for each in data["findings"]] == summaries
    assert {each["hang"] is None for each in data["findings"] if each["check"]} <= {True}
    for written in (as_markdown(page).decode(), as_html(page).decode()):
        assert all(each.check in written for each in checked.findings if each.status is Status.FAIL)
    assert f'{PREFIX}exit_code{{command="hang"}} {data["exit_code"]}' in as_prometheus(made).decode()


@pytest.mark.slow
def test_every_command_writes_such_a_report_and_its_other_forms(tmp_path: Path) -> None:
    json_file, junit, prometheus = (tmp_path / name for name in ("json", "junit", "prometheus"))
    files = ("--json", str(json_file), "--junit", str(junit), "--prometheus", str(prometheus))
    for words in commands(tmp_path):
        code, shown = typed(*words, *files)
        data = json.loads(json_file.read_bytes())
        assert (words, wrong(data)) == (words, [])
        assert words[0] == "demo" or data["exit_code"] == code
        means_the_same(data)
        well_formed(junit.read_bytes().decode())
        label = ("command", data["run"]["command"])
        assert parsed(prometheus.read_text())[f"{PREFIX}exit_code", (label,)] == data["exit_code"]
        assert shown


def test_the_schema_refuses_what_is_not_such_a_report() -> None:
    data = as_data(reports()["sick-hosts"])
    for spoilt in (
        {key: value for key, value in data.items() if key != "plan"},
        data | {"schema": 1},
        data | {"more": 1},
        data | {"summary": "2 hosts are faulty"},
        data | {"findings": [data["findings"][0] | {"rank": "3"}]},
    ):
        assert wrong(spoilt)


def test_the_schema_is_printed() -> None:
    assert typed("list", "schema") == (0, json.dumps(schema(), indent=1) + "\n")


def test_the_pages_explain_each_field() -> None:
    pages = field_pages(
        schema_of(
            *(Envelope, CheckReport, LogsReport, HangReport, SlowReport, RunReport, DiffReport),
            *(HistoryReport, ShadowLine),
        )
    )
    for name, text in pages.items() if os.environ.get("UPDATE_DOCS") else ():
        (REFERENCE / f"{name}.md").write_text(text)
    assert {path.stem: path.read_text() for path in REFERENCE.glob("*.md")} == pages, "run with UPDATE_DOCS=1"
