"""A recording made by an older version replays to the report that the older version made of it.

`tests/samples/recordings/` keeps three files of each run: `NAME.run.json.gz` is what `--save` wrote,
`NAME.report.json.gz` what `doctor check --replay` made of it at that time, and `NAME.CODE.txt` its exit
code and what it printed with `-v` at 80 columns. Do not make the recordings again: they are worth something
because they are old.

Everything but sentences must stay equal. When a sentence is reworded on purpose, run
`UPDATE_REPLAY=1 pytest` on this file: it writes the new sentences into the samples, and nothing else. Read
the difference of the `.txt` files before committing it.

Checks newer than the samples are left out of the comparison. Where a recording lacks their facts, they must
not change its exit code.
"""

import contextlib
import gzip
import io
import json
import os
import re
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from doctor import cli
from doctor.judge.registry import find_checks
from tests.support.envelopes import wrong
from tests.support.paths import ROOT

SAMPLES = ROOT / "tests" / "samples" / "recordings"
NAMES = sorted(path.name.removesuffix(".run.json.gz") for path in SAMPLES.glob("*.run.json.gz"))
SENTENCES = {"actual", "expected", "reason", "source", "subject", "summary", "text"}
"""Keys of a report whose value, if it is text, was written for people."""
NOTE = re.compile(r"^  note: left out on request:.*\n(?: {4}.*\n)*", re.MULTILINE)
"""It lists checks, of which there may be more by now."""
Report = dict[str, Any]

each_name = pytest.mark.parametrize("name", NAMES)


def unzipped(name: str) -> bytes:
    return gzip.decompress((SAMPLES / name).read_bytes())


def report_of(name: str) -> Report:
    report: Report = json.loads(unzipped(f"{name}.report.json.gz"))
    return report


def terminal_of(name: str) -> Path:
    (path,) = SAMPLES.glob(f"{name}.[0-9]*.txt")
    return path


def exit_code_of(name: str) -> int:
    return int(terminal_of(name).name.split(".")[1])


@cache
def checks_then() -> frozenset[str]:
    """The checks that existed when the samples were made."""
    return frozenset(row["check"] for name in NAMES for row in report_of(name)["results"])


@cache
def replay(name: str, *options: str) -> tuple[int, Report, str]:
    """The exit code, the report and the text that today's code makes of a sample."""
    printed = io.StringIO()
    with (
        tempfile.TemporaryDirectory() as folder,
        pytest.MonkeyPatch.context() as patch,
        contextlib.redirect_stdout(printed),
    ):
        recording, report = Path(folder, "run.json"), Path(folder, "report.json")
        recording.write_bytes(unzipped(f"{name}.run.json.gz"))
        patch.setenv("COLUMNS", "80")
        files = ("--replay", str(recording), "--json", str(report))
        code = cli.run(["check", *files, "--no-color", "-v", *options])
        return code, json.loads(report.read_bytes()), printed.getvalue()


def replay_as_then(name: str) -> tuple[int, Report, str]:
    """Replay without the checks that are newer than the samples."""
    newer = sorted(check.id for check in find_checks().checks if check.id not in checks_then())
    return replay(name, *(["--skip", ",".join(newer)] if newer else []))


def without_sentences(value: Any, key: str = "") -> Any:
    """The same value with each sentence blank."""
    if isinstance(value, dict):
        return {k: without_sentences(v, "reason" if key == "left_out" else k) for k, v in value.items()}
    if isinstance(value, list):
        return [without_sentences(each, key) for each in value]
    return "..." if key in SENTENCES and isinstance(value, str) else value


def told(report: Report) -> Report:
    """The whole report except the version that made it, and the version of its form; the findings by name."""
    kept = {key: value for key, value in report.items() if key not in ("schema", "tool")}
    return {**kept, "findings": by_name(report["findings"])}


def by_name(findings: list[Report]) -> list[Report]:
    """Findings in an order of their own: which one comes first may change."""
    ordered = sorted(
        findings, key=lambda each: (each["check"], each["status"], each["nodeset"], json.dumps(each["where"]))
    )
    ids = {each["id"]: f"f{number}" for number, each in enumerate(ordered)}
    return [{**each, "id": ids[each["id"]], "because": ids.get(each["because"])} for each in ordered]


def as_far_as(old: Any, new: Any) -> Any:
    """The new value without fields that reports lacked at that time: fields are added, but never moved."""
    if isinstance(old, dict) and isinstance(new, dict):
        return {key: as_far_as(each, new[key]) for key, each in old.items() if key in new}
    if isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        return [as_far_as(*pair) for pair in zip(old, new, strict=True)]
    return new


@each_name
def test_the_report_has_the_same_results(name: str) -> None:
    """Findings, culprits, remedies, hosts, plan, smoke runs, results, counts, verdict and exit code."""
    code, report, _ = replay_as_then(name)
    assert code == exit_code_of(name)
    before = told(report_of(name))
    assert without_sentences(as_far_as(before, told(report))) == without_sentences(before)
    assert wrong(report) == []


@each_name
def test_the_report_has_the_same_words(name: str) -> None:
    _, report, printed = replay_as_then(name)
    before = told(report_of(name))
    if os.environ.get("UPDATE_REPLAY"):
        assert without_sentences(as_far_as(before, told(report))) == without_sentences(before)
        text = json.dumps(report, indent=1).encode()
        (SAMPLES / f"{name}.report.json.gz").write_bytes(gzip.compress(text, 9, mtime=0))
        terminal_of(name).write_text(printed)
    assert as_far_as(before, told(report)) == before
    assert NOTE.sub("", printed) == NOTE.sub("", terminal_of(name).read_text())


@each_name
def test_newer_checks_that_lack_their_facts_decide_nothing(name: str) -> None:
    """Facts that an old recording lacks neither change its exit code nor make a host doubtful.

    A newer check may find something in facts that it does hold.
    """
    _, report, _ = replay(name)
    newer = [found for found in report["findings"] if found["check"] not in checks_then()]
    finding = sorted({found["check"] for found in newer if found["status"] != "unknown"})
    code, report, _ = replay(name, *(["--skip", ",".join(finding)] if finding else []))
    before = report_of(name)
    assert (code, report["verdict"]) == (exit_code_of(name), before["verdict"])
    hosts = as_far_as(before["hosts"], report["hosts"])
    assert without_sentences(hosts) == without_sentences(before["hosts"])


def test_the_samples_hold_every_kind_of_outcome() -> None:
    assert len(NAMES) > 30
    assert {exit_code_of(name) for name in NAMES} == {0, 1, 3}
    blamed = {found["check"] for name in NAMES for found in report_of(name)["findings"]}
    assert blamed >= {"host-unreachable", "firewall-blocks", "gpu-xid", "device-ip-missing", "smoke-hang"}
