"""The gauges, read by a parser that is at least as strict as the text format 0.0.4 and the collector."""

import os
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from doctor import __version__
from doctor.judge.verdict import Report
from doctor.model import HostStatus, Status
from doctor.report.files.prometheus import PREFIX
from doctor.text.outfile import write_file
from doctor.text.printable import clean_line
from tests.support.cases import cases
from tests.support.envelopes import Made, as_prometheus, envelope_of
from tests.support.logs.conclusions import explaineds
from tests.support.paths import ROOT
from tests.support.poison import furnished, many, nasty_text, poisoned
from tests.support.reports import reports

NAME = r"[a-zA-Z_:][a-zA-Z0-9_:]*"
LABEL = r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\[\\"n])*)"'
HELP = re.compile(rf"# HELP ({NAME}) ((?:[^\\\n]|\\[\\n])+)")
TYPE = re.compile(rf"# TYPE ({NAME}) (counter|gauge|histogram|summary|untyped)")
SAMPLE = re.compile(rf"({NAME})(?:\{{((?:{LABEL},)*{LABEL})\}})? (\S+)")
UNESCAPED = {r"\\": "\\", r"\"": '"', r"\n": "\n"}
Series = tuple[str, tuple[tuple[str, str], ...]]


def parsed(text: str) -> dict[Series, float]:
    """Every sample; AssertionError if `promtool check metrics` or the collector would refuse the file."""
    assert text.endswith("\n")
    found: dict[Series, float] = {}
    current, seen = "", set[str]()
    for line in text.removesuffix("\n").split("\n"):
        if told := HELP.fullmatch(line):
            current = told[1]
            assert current not in seen, "a metric in two pieces"
            seen.add(current)
        elif typed := TYPE.fullmatch(line):
            assert typed[1] == current
            assert typed[2] == "gauge"
        else:
            sample = SAMPLE.fullmatch(line)
            assert sample, line
            assert sample[1] == current
            labels = list(pairs(sample[2] or ""))
            assert len(dict(labels)) == len(labels)
            series = (sample[1], tuple(sorted(labels)))
            assert series not in found, "one series twice"
            found[series] = float(sample[sample.re.groups])
    return found


def pairs(labels: str) -> Iterator[tuple[str, str]]:
    for name, value in re.findall(LABEL, labels):
        assert not name.startswith("__")
        assert name not in ("instance", "job"), "Prometheus sets these itself"
        yield name, re.sub(r"\\.", lambda found: UNESCAPED[found[0]], value)


def read(made: Made) -> dict[Series, float]:
    """The samples without the label of the command, which every series has."""
    found: dict[Series, float] = {}
    for (name, labels), number in parsed(as_prometheus(made).decode()).items():
        others = tuple(label for label in labels if label[0] != "command")
        assert len(others) == len(labels) - 1
        found[name.removeprefix(PREFIX), others] = number
    return found


def value(made: Report, name: str, **labels: str) -> float:
    return read(made)[name, tuple(sorted(labels.items()))]


@pytest.mark.parametrize("name", reports())
def test_every_kind_of_report(name: str) -> None:
    made = reports()[name]
    found = read(made)
    assert found["exit_code", ()] == made.exit_code
    assert found["run_duration_seconds", ()] == made.run.seconds
    assert found["run_start_timestamp_seconds", ()] == 1_795_165_200
    assert found["build_info", (("version", __version__),)] == 1
    assert {dict(labels)["verdict"] for (name, labels), on in found.items() if name == "verdict" and on} == {
        made.verdict.value
    }
    healthy = {dict(labels)["host"] for (name, labels), on in found.items() if name == "host_healthy" and on}
    assert healthy == set(made.healthy_hosts)
    for status in HostStatus:
        counted = sum(host.status is status for host in made.hosts)
        assert found["hosts", (("status", status.value),)] == counted


@pytest.mark.parametrize("name", reports())
def test_a_check_is_zero_only_where_it_passed(name: str) -> None:
    made = reports()[name]
    passed = {
        (result.check, host)
        for result in made.results
        if result.status is Status.PASS
        for host in result.hosts
    }
    for (name, labels), status in read(made).items():
        if name == "check_status" and status == 0:
            named = dict(labels)
            assert (named["check"], named.get("host")) in passed or "host" not in named
    for finding in made.findings:
        for host in finding.hosts:
            assert value(made, "check_status", check=finding.check, host=host) > 0


def test_the_values_of_a_check() -> None:
    made = reports()["sick-hosts"]
    statuses = {status: replace(made.findings[0], hosts=("node1",), status=status) for status in Status}
    for status, number in ((Status.UNKNOWN, 1), (Status.WARN, 2), (Status.CRASH, 3), (Status.FAIL, 4)):
        one = replace(made, findings=(statuses[status],))
        assert value(one, "check_status", check="port-unreachable", host="node1") == number
    with pytest.raises(KeyError):
        value(made, "check_status", check="gpu-missing", host="node1")


def test_what_is_wrong_with_no_single_host_has_no_label_of_one() -> None:
    assert value(reports()["all-unreachable"], "check_status", check="host-unreachable") == 4


def test_a_time_that_is_none_is_left_out() -> None:
    made = reports()["healthy"]
    found = read(replace(made, run=replace(made.run, started="yesterday")))
    assert ("run_start_timestamp_seconds", ()) not in found
    assert found["exit_code", ()] == 0


@settings(max_examples=80, deadline=None)
@given(kind=st.sampled_from(list(furnished())), evil=nasty_text, around=st.booleans())
def test_hostile_text_in_every_field(kind: str, evil: str, around: bool) -> None:
    made = furnished()[kind]
    hostile = read(poisoned(envelope_of(made), evil, around=around))
    assert sum(name == "host_healthy" for name, _ in hostile) == len(made.hosts)
    names = {f"{evil if around else ''}{host.name}{evil}" for host in made.hosts}
    labels = {dict(labels).get("host") for _, labels in hostile} - {None}
    assert labels == {clean_line(name) for name in names}


def test_files_of_two_commands_in_one_folder_share_no_series() -> None:
    """The node exporter refuses a series that it has already read from another file in the folder."""
    made = reports()["sick-hosts"]
    check, preflight = (replace(made, run=replace(made.run, command=name)) for name in ("check", "preflight"))
    texts = [as_prometheus(each).decode() for each in (check, preflight, explaineds()["oom"])]
    every = [series for text in texts for series in parsed(text)]
    assert len(set(every)) == len(every)
    heads = {line for text in texts for line in text.splitlines() if line.startswith("#")}
    assert len(heads) == len({tuple(line.split()[1:3]) for line in heads}), "a metric has one help everywhere"


def test_the_page_has_every_gauge_with_its_labels() -> None:
    rows = re.findall(
        rf"^\| `{PREFIX}(\w+)` \|\s*([^|]*?)\s*\|", (ROOT / "docs/formats.md").read_text(), re.MULTILINE
    )
    told = {name: frozenset(re.findall(r"\w+", labels)) for name, labels in rows}
    assert all("command" in labels for labels in told.values())
    shown: dict[str, frozenset[str]] = {}
    for name, labels in read(reports()["sick-hosts"]):
        shown[name] = shown.get(name, frozenset({"command"})) | dict(labels).keys()
    assert told == shown


def test_names_that_look_alike_once_cleaned_are_one_series() -> None:
    made = reports()["one-host"]
    (host,) = made.hosts
    twins = (replace(host, name="a\x1b"), replace(host, name="a\\x1b", status=HostStatus.FAULTY))
    assert value(replace(made, hosts=twins), "host_healthy", host="a\\x1b") == 0


@pytest.mark.slow
def test_512_hosts_have_no_more_series_than_hosts_times_checks() -> None:
    made = many()
    found = read(made)
    assert sum(name == "check_status" for name, _ in found) <= 512 * len(made.checks.scopes)
    assert {key for _, labels in found for key, _ in labels} == {
        "check",
        "host",
        "status",
        "verdict",
        "version",
    }
    texts = {each for _, labels in found for _, each in labels}
    known = {*made.checks.scopes, *(host.name for host in made.hosts), __version__}
    assert texts - known <= {"healthy", "faulty", "inconclusive", "unexamined"}


@pytest.mark.parametrize(("umask", "mode"), [(0o022, 0o644), (0o077, 0o600), (0, 0o644)])
def test_a_service_may_read_the_file_unless_the_umask_forbids_it(
    umask: int, mode: int, tmp_path: Path
) -> None:
    before = os.umask(umask)
    try:
        write_file(tmp_path / "doctor.prom", as_prometheus(reports()["healthy"]), for_all=True)
        write_file(tmp_path / "private", b"")
    finally:
        os.umask(before)
    assert (tmp_path / "doctor.prom").stat().st_mode & 0o777 == mode
    assert (tmp_path / "private").stat().st_mode & 0o777 == 0o600
    assert sorted(path.name for path in tmp_path.iterdir()) == ["doctor.prom", "private"]


@cases
def test_the_parser_refuses_what_is_wrong(wrong: str) -> None:
    with pytest.raises((AssertionError, ValueError)):
        parsed(wrong)


def test_the_parser_reads_what_is_right() -> None:
    text = '# HELP a x\n# TYPE a gauge\na{b="\\\\\\"\\n"} 1.5\n'
    assert parsed(text) == {("a", (("b", '\\"\n'),)): 1.5}


def test_the_alert_rules_ask_for_gauges_that_exist() -> None:
    rules = (ROOT / "examples/prometheus/alerts.yaml").read_text()
    made = parsed(as_prometheus(reports()["healthy"]).decode())
    every = {name for name, _ in made}
    assert {*re.findall(rf"\b{PREFIX}\w+", rules)} <= every
