"""Golden reports, and what hostile hosts cannot do to a terminal or to JSON.

The golden files' names carry the exit code. `UPDATE_GOLDEN=1 pytest tests/test_report.py` writes them anew:
read the difference before you commit it.
"""

from __future__ import annotations

import io
import json
import os
import re
import unicodedata
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from rich.console import Console

from doctor.model import Host, Missing, Reach, Unreached
from doctor.report.clean import clean
from doctor.report.json import as_json
from doctor.report.text import print_report
from doctor.verdict import Report
from tests.recordings import HEALTHY, heard, mesh, recording, report

GOLDEN = Path(__file__).parent / "golden"
NAMES = [f"node{n}" for n in range(1, 5)]
SMALL_SHM = HEALTHY["spaces"].replace("tmpfs 12342040 0 12342040", "shm 65536 0 65536")
REFUSED = ("connection refused on port 22", "Start sshd.", ("ssh node4",), "Connection refused")


def lost(*names: str) -> dict[str, Unreached]:
    return {name: Unreached(name, Reach.REFUSED, *REFUSED) for name in names}


def answering(*names: str, **more: Any) -> Any:
    """A recording of which only some hosts answered."""
    whole = recording(NAMES, **more)
    return replace(whole, heard={name: whole.heard[name] for name in names})


def reports() -> dict[str, Report]:
    small = {"node2": heard(2, NAMES, spaces=SMALL_SHM), "node3": heard(3, NAMES, spaces=SMALL_SHM)}
    sick = {
        "node2": heard(2, NAMES, spaces=SMALL_SHM, view={"/run/.containerenv": "x"}),
        "node3": heard(
            3,
            NAMES,
            names="? node3\n127.0.1.1 STREAM node3\n? node1\n10.0.0.1 STREAM",
            swap={"/proc/swaps": "Filename Type Size Used Priority\n/dev/vdb partition 2048000 1024000 -2"},
        ),
    }
    closed = mesh(NAMES, *((name, "node3") for name in NAMES if name != "node3"))
    no_root = {
        n: heard(i, NAMES, kernel_log=Missing("kernel-log", "needs root")) for i, n in enumerate(NAMES, 1)
    }
    no_disks = {"node2": heard(2, NAMES, spaces=Missing("spaces", "its command did not end within 5 s"))}
    return {
        "healthy": report(recording(NAMES)),
        "one-host": report(recording(NAMES[:1])),
        "no-root": report(recording(NAMES, heard=no_root)),
        "same-fault-twice": report(recording(NAMES, heard=small)),
        "sick-hosts": report(recording(NAMES, heard=sick, mesh=closed)),
        "essential-unknown": report(recording(NAMES, heard=no_disks)),
        "unreachable": report(answering("node1", "node2", "node3", unreached=lost("node4"))),
        "all-unreachable": report(answering(unreached=lost(*NAMES), mesh=None)),
        "need-three-hosts": report(recording(NAMES, heard={"node2": small["node2"]}), need_hosts=3),
        "need-four-hosts": report(recording(NAMES, heard={"node2": small["node2"]}), need_hosts=4),
        "interrupted": report(answering("node1", unfinished=tuple(NAMES[1:]), mesh=None), stopped_by=2),
    }


def text(of: Report, width: int, **options: bool) -> str:
    out = io.StringIO()
    console = Console(file=out, width=width, highlight=False, markup=False, emoji=False)
    print_report(of, console, **options)
    return out.getvalue()


def compare(name: str, made: str) -> None:
    golden = GOLDEN / name
    if os.environ.get("UPDATE_GOLDEN"):
        golden.parent.mkdir(exist_ok=True)
        golden.write_text(made)
    assert golden.is_file(), f"no golden file {name}: run with UPDATE_GOLDEN=1"
    assert made == golden.read_text()


@pytest.mark.parametrize("name", reports())
def test_golden(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("doctor.report.json.__version__", "0")
    made = reports()[name]
    stem = f"{name}.{made.exit_code}"
    compare(f"{stem}.80.txt", text(made, 80))
    compare(f"{stem}.200.txt", text(made, 200))
    compare(f"{stem}.json", as_json(made).decode())


def test_no_golden_file_is_left_over() -> None:
    made = {f"{name}.{of.exit_code}" for name, of in reports().items()}
    found = {re.sub(r"(\.80|\.200)?\.(txt|json)$", "", path.name) for path in GOLDEN.iterdir()}
    assert found == made


def test_quiet_and_verbose() -> None:
    made = reports()["sick-hosts"]
    plain, quiet, verbose = (text(made, 100, **o) for o in ({}, {"quiet": True}, {"verbose": True}))
    assert "backend gloo" in plain
    assert "backend gloo" not in quiet
    assert quiet.splitlines()[-2] == plain.splitlines()[-2], "the last sentence stays"
    assert "df -kP /dev/shm: " in verbose
    assert "does not apply: " in verbose
    assert text(reports()["healthy"], 100, quiet=True).count("\n") == 1


# The schema, written once more as types: what scripts may rely on.


class Strict(msgspec.Struct, forbid_unknown_fields=True):
    """A mapping with these keys, all of them and no others."""


class Tool(Strict):
    name: Literal["cluster-doctor"]
    version: str


class Run(Strict):
    command: str
    exam: str
    started: str
    seconds: float
    transport: str


class Name(Strict):
    value: str
    source: str


class Number(Strict):
    value: int
    source: str


class Plan(Strict):
    hosts: int
    ranks: int
    backend: Name
    head: Name
    master_port: Number


class Summary(Strict):
    hosts: int
    healthy: int
    faulty: int
    unexamined: int
    checks: int
    # "pass" is a word of Python's
    passed: int = msgspec.field(name="pass")
    fail: int
    warn: int
    unknown: int
    skip: int
    crash: int


class HostRow(Strict):
    name: str
    address: str
    product: str
    status: Literal["healthy", "faulty", "unexamined"]
    reason: str | None


class Where(Strict):
    host: str | None
    rank: int | None
    device: int | None
    port: int | None
    peer: str | None


class Seen(Strict):
    source: str
    text: str


class Mend(Strict):
    id: str
    commands: list[str]


class FindingRow(Strict):
    id: str
    check: str
    status: Literal["fail", "warn", "unknown", "crash"]
    hosts: list[str]
    nodeset: str
    subject: str | None
    where: list[Where]
    view: Literal["host", "container"]
    confidence: Literal["certain", "strong", "suspect"]
    summary: str
    expected: str
    actual: str
    evidence: list[Seen]
    remedy: Mend | None
    because: str | None


class ResultRow(Strict):
    check: str
    hosts: list[str]
    status: Literal["pass", "fail", "warn", "unknown", "skip", "crash"]
    reason: str | None


class Document(Strict):
    schema: Literal[1]
    tool: Tool
    run: Run
    plan: Plan
    verdict: Literal["healthy", "faulty", "inconclusive"]
    summary: Summary
    hosts: list[HostRow]
    findings: list[FindingRow]
    smoke: None
    results: list[ResultRow]


@pytest.mark.parametrize("name", reports())
def test_json_has_exactly_the_keys_of_its_schema(name: str) -> None:
    made = reports()[name]
    document = msgspec.json.decode(as_json(made), type=Document, strict=True)
    assert {f.because for f in document.findings} <= {None, *(f.id for f in document.findings)}
    assert {h for f in document.findings for h in f.hosts} <= {h.name for h in document.hosts}
    counted = document.summary
    assert counted.hosts == counted.healthy + counted.faulty + counted.unexamined == len(document.hosts)


HOSTILE = "\x1b[2J\x1b]0;owned\x07\r\b\x9b31m\u202eevil\u2066\u200b\u2028\n\x00\ud800 \U000e0041末"


def hostile_report(evil: str) -> Report:
    names = ["node1", "node2", "node3"]
    answers = {
        "node1": heard(
            1,
            names,
            identity=f"same{evil.split()[0] if evil.split() else ''} x86_64",
            spaces=SMALL_SHM.replace("/dev/vda", evil),
            kernel_log=f"[1.0] Out of memory: Killed {evil}",
            python=f"python 3.9 {evil}",
            firewall=Missing("firewall", evil),
        ),
        "node2": heard(
            2, names, environment=f"NCCL_DEBUG={evil}", kernel={"/proc/sys/kernel/osrelease": evil}
        ),
    }
    lost = Unreached("node3", Reach.OTHER, evil, evil, (evil,), evil)
    made = recording(names, heard=answers, unreached={"node3": lost}, notes=(evil,))
    return report(replace(made, heard={n: made.heard[n] for n in names[:2]}))


def unsafe(shown: str) -> list[str]:
    """What may move the cursor, change colours or the direction of writing, or hide text."""
    return [c for c in shown if c != "\n" and unicodedata.category(c) in ("Cc", "Cf", "Cs", "Zl", "Zp")]


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(evil=st.just(HOSTILE) | st.text(max_size=40))
def test_hostile_output_draws_nothing_and_breaks_no_json(evil: str) -> None:
    made = hostile_report(evil)
    for width in (80, 200):
        assert unsafe(text(made, width, verbose=True)) == []
    msgspec.json.decode(as_json(made), type=Document)
    assert json.loads(as_json(made))["schema"] == 1


def test_a_line_end_in_what_a_host_said_cannot_imitate_a_finding() -> None:
    shown = text(hostile_report("x\nFAIL  node9  shm-small\n\nHealthy. "), 200, verbose=True)
    assert not [line for line in shown.splitlines() if re.match(r"FAIL +node9|Healthy", line)]


def test_hostile_host_names_of_a_recording() -> None:
    """A recording is somebody else's file too."""
    name = f"no{HOSTILE}de"
    made = recording(["node1", "node2"], hosts=(Host(name, name), Host("node2", "node2")))
    assert unsafe(text(report(made), 80, verbose=True)) == []
    msgspec.json.decode(as_json(report(made)), type=Document)


@given(st.text())
def test_clean(given_text: str) -> None:
    shown = clean(given_text)
    assert not [c for c in unsafe(shown) if c not in "\t"]
    assert clean(shown) == shown
