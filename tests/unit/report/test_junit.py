"""JUnit XML: in the form that Jenkins' schema (junit-10.xsd) allows, and never greener than the report."""

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from xml.etree import ElementTree as Xml

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from doctor.model import Status
from tests.support.envelopes import Made, as_junit, envelope_of
from tests.support.hang.written import evidence
from tests.support.logs.conclusions import explaineds
from tests.support.poison import furnished, many, nasty_text, poisoned
from tests.support.reports import reports

ENDED = {"type", "message"}
SHAPE = {
    "testsuites": ({"name", "time", "tests", "failures", "errors"}, set(), {"testsuite"}),
    "testsuite": (
        {"name", "tests", "failures", "errors"},
        {"group", "time", "skipped", "timestamp", "hostname", "id", "package", "file", "log", "url"},
        {"testcase", "properties", "system-out", "system-err"},
    ),
    "testcase": (
        {"name", "classname"},
        {"time", "group"},
        {"failure", "error", "skipped", "system-out", "system-err"},
    ),
    "failure": (ENDED, set(), set()),
    "error": (ENDED, set(), set()),
    "skipped": (ENDED, set(), set()),
}
"""Element -> the attributes that it must have, those that it may have, and its possible children."""
TIME = re.compile(r"(([0-9]{0,3},)*[0-9]{3}|[0-9]{0,3})*(\.[0-9]*)?")
ALLOWED = re.compile(r"[\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]*")


def read(made: Made) -> Xml.Element:
    """The document, after its form and its counts were checked."""
    return well_formed(as_junit(made).decode())


def well_formed(written: str) -> Xml.Element:
    assert ALLOWED.fullmatch(written), "XML 1.0 knows no such character"
    root = Xml.fromstring(written)
    assert root.tag == "testsuites"
    for element in root.iter():
        needed, may, inside = SHAPE[element.tag]
        assert needed <= set(element.attrib) <= needed | may
        assert {child.tag for child in element} <= inside
        if element.tag == "testcase":
            assert len(element) <= 1, "one outcome"
        if element.tag != "testsuites" and len(element):
            assert not (element.text or "").strip()
    assert TIME.fullmatch(root.attrib["time"])
    for suite in root:
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d", suite.get("timestamp", "2026-01-01T00:00:00"))
        found = Counter(child.tag for case in suite for child in case)
        counted = [int(suite.attrib[name]) for name in ("failures", "errors", "skipped", "tests")]
        assert counted == [found["failure"], found["error"], found["skipped"], len(suite)]
    for name in ("tests", "failures", "errors"):
        assert int(root.attrib[name]) == sum(int(suite.attrib[name]) for suite in root)
    keys = [(case.get("classname"), case.get("name")) for case in root.iter("testcase")]
    assert len(set(keys)) == len(keys), "GitLab keeps the first of two with one name"
    return root


def cases(root: Xml.Element) -> Iterator[tuple[str, str, Xml.Element]]:
    for suite in root:
        for case in suite:
            yield suite.attrib["name"], case.attrib["name"], case


def ended(root: Xml.Element, host: str, check: str) -> Xml.Element | None:
    (case,) = [case for suite, name, case in cases(root) if (suite, name) == (host, check)]
    return case[0] if len(case) else None


@pytest.mark.parametrize("name", reports())
def test_it_is_never_greener_than_the_report(name: str) -> None:
    made = reports()[name]
    root = read(made)
    verdict = ended(root, "all hosts", "verdict")
    assert (verdict is None) == (made.exit_code == 0)
    passed = {(host, check) for host, check, case in cases(root) if not len(case)}
    failed = {(host, check) for host, check, case in cases(root) if len(case) and case[0].tag == "failure"}
    for finding in made.findings:
        for host in finding.hosts or ("all hosts",):
            assert (host, finding.check) not in passed
            assert ((host, finding.check) in failed) == made.rules.faults(finding)
    for each in made.hosts:
        assert ((each.name, "examined") in passed) == (each.status.value != "unexamined")


def test_a_culprit_of_hang_and_a_cause_of_logs_fail_their_host_alone() -> None:
    hung = read(evidence(("waits", "sleeps", "waits"), ("node1", "node2")))
    culprit = ended(hung, "node1", "hang")
    assert culprit is not None
    assert (culprit.tag, culprit.get("type")) == ("failure", "fail")
    assert str(culprit.get("message")).startswith("HANG  rank 1 on node1 (pid 4010): sleeps in forward")
    logs = read(explaineds()["oom"])
    cause, followed = ended(logs, "node3", "logs"), ended(logs, "node1", "logs")
    assert cause is not None
    assert followed is not None
    assert (cause.tag, followed.tag) == ("failure", "skipped")
    assert cause.get("message") == "FAIL  rank 2 on node3 was killed by the kernel for lack of memory"
    assert "of kernel-oom on node3" in str(followed.text)
    for made in (evidence(("waits", "waits"), ("node1", "node2"), silent=0.1), explaineds()["clean"]):
        assert not [each for _, _, each in cases(read(made)) if len(each)]


def test_a_fault_says_who_what_and_what_to_do() -> None:
    root = read(reports()["sick-hosts"])
    fault = ended(root, "node3", "hostname-loopback")
    assert fault is not None
    assert fault.text is not None
    assert (fault.tag, fault.get("type")) == ("failure", "fail")
    assert re.fullmatch(
        "FAIL  node3: (its )?own name resolves to a loopback address", str(fault.get("message"))
    )
    assert fault.text.startswith(str(fault.get("message"))), "GitLab shows the text alone"
    for line in (
        "found: node3 is 127.0.1.1",
        "expected: the address that peers connect to, 10.0.0.3",
        "do: echo 10.0.0.3 node3 | sudo tee -a /etc/hosts",
        "seen: getent ahosts node3: 127.0.1.1",
        "more: doctor explain hostname-loopback",
    ):
        assert line in fault.text.splitlines()
    assert ended(root, "node1", "hostname-loopback") is None
    warning = ended(root, "node3", "swap-active")
    assert warning is not None
    assert (warning.tag, warning.get("type")) == ("skipped", "warn")


def test_what_was_not_decided_is_skipped_with_its_reason() -> None:
    unread = ended(read(reports()["essential-unknown"]), "node2", "shm-small")
    assert unread is not None
    assert (unread.tag, unread.get("type")) == ("skipped", "unknown")
    assert "its command did not end within 5 s" in str(unread.get("message"))
    silent = ended(read(reports()["unreachable"]), "node4", "examined")
    assert silent is not None
    assert (silent.tag, silent.get("message")) == ("skipped", "not examined: connection refused on port 22")
    verdict = ended(read(reports()["essential-unknown"]), "all hosts", "verdict")
    assert verdict is not None
    assert verdict.tag == "error"


def test_a_check_that_broke_is_an_error_and_so_is_one_that_was_not_loaded() -> None:
    made = reports()["same-fault-twice"]
    broken = tuple(replace(finding, status=Status.CRASH) for finding in made.findings)
    root = read(replace(made, findings=broken, rules=replace(made.rules, unloaded=("x.py: no such file",))))
    case, source = ended(root, "node2", "shm-small"), ended(root, "all hosts", "checks not loaded 1")
    assert case is not None
    assert source is not None
    assert (case.tag, case.get("type")) == ("error", "crash")
    assert (source.tag, source.text) == ("error", "x.py: no such file")


def test_a_strict_run_fails_on_warnings() -> None:
    made = reports()["sick-hosts"]
    warning = ended(read(replace(made, rules=replace(made.rules, strict=True))), "node3", "swap-active")
    assert warning is not None
    assert warning.tag == "failure"


def test_a_cleared_suspect_fails_nothing() -> None:
    """The findings name the culprits; the results also name the suspects before a cause was known."""
    made = reports()["same-fault-twice"]
    (finding,) = made.findings
    cleared = replace(finding, hosts=("node2",), nodeset="node2")
    names = [(host, name) for host, name, _ in cases(read(replace(made, findings=(cleared,))))]
    assert ("node2", "shm-small") in names
    assert ("node3", "shm-small") not in names


def test_dots_of_a_host_make_no_package_of_jenkins() -> None:
    made = poisoned(reports()["one-host"], ".example.com")
    classes = {case.attrib["classname"] for _, _, case in cases(read(made))}
    assert classes == {"cluster-doctor.all hosts", "cluster-doctor.node1·example·com"}


@settings(max_examples=60, deadline=None)
@given(kind=st.sampled_from(list(furnished())), evil=nasty_text, around=st.booleans())
def test_hostile_text_in_every_field(kind: str, evil: str, around: bool) -> None:
    made = envelope_of(furnished()[kind])
    shape = [(element.tag, len(element)) for element in read(made).iter()]
    assert [(e.tag, len(e)) for e in read(poisoned(made, evil, around=around)).iter()] == shape


@pytest.mark.slow
def test_512_hosts() -> None:
    made = many()
    root = read(made)
    assert [suite.get("name") for suite in root] == ["all hosts", *(host.name for host in made.hosts)]
    assert len(as_junit(made)) < 30_000_000, "more is refused by GitLab"
