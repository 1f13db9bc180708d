"""The JSON of every kind of report has exactly the keys of its schema, written here once more as types."""

from __future__ import annotations

from typing import Literal

import msgspec
import pytest

from doctor.report.json import as_json
from tests.support.reports import reports


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
    facts: dict[str, str | int | float | list[str | int]]


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


class Rank(Strict):
    rank: int
    host: str
    device: int | None


class Layout(Strict):
    dp: int
    tp: int
    cells: int


class PhaseRow(Strict):
    name: Literal["net", "start", "join", "collectives", "train", "audit", "bandwidth"]
    status: Literal["pass", "fail", "skipped"]
    seconds: float


class Loss(Strict):
    steps: int
    curve: list[float | None]
    drop: float | None
    limit: float | None
    floor: float
    replica_gap: float | None


class LinkRow(Strict):
    hosts: tuple[str, str]
    bytes_per_second: int
    round_trip_ms: float


class SmokeRun(Strict):
    status: Literal["pass", "fail", "skipped"]
    reason: str | None
    backend: Literal["gloo", "nccl", "hccl"]
    ranks: list[Rank]
    layout: Layout | None
    phases: list[PhaseRow]
    loss: Loss | None
    bandwidth: list[LinkRow]
    versions: dict[str, str]
    injected: str | None
    hosts: list[str]
    left_out: dict[str, str]
    seconds: float
    latency: float | None


class Smoke(SmokeRun):
    runs: list[SmokeRun]


class Document(Strict):
    schema: Literal[1]
    tool: Tool
    run: Run
    plan: Plan
    verdict: Literal["healthy", "faulty", "inconclusive"]
    summary: Summary
    hosts: list[HostRow]
    findings: list[FindingRow]
    smoke: Smoke | None
    results: list[ResultRow]


@pytest.mark.parametrize("name", reports())
def test_json_has_exactly_the_keys_of_its_schema(name: str) -> None:
    made = reports()[name]
    document = msgspec.json.decode(as_json(made), type=Document, strict=True)
    assert {f.because for f in document.findings} <= {None, *(f.id for f in document.findings)}
    assert {h for f in document.findings for h in f.hosts} <= {h.name for h in document.hosts}
    counted = document.summary
    assert counted.hosts == counted.healthy + counted.faulty + counted.unexamined == len(document.hosts)
