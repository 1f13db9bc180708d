"""The cases of `doctor check`: recordings of hosts, sound and sick, and whom the verdict may name."""

import gzip
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import yaml

from doctor.judge.verdict import Report
from doctor.recording import Recording
from tests.exam.cases import Half, halves
from tests.support.paths import ROOT

FOLDER = Path(__file__).parent / "clusters"
Worth = Literal["right", "silent", "wrong", "false"]


@dataclass(frozen=True, slots=True)
class ClusterCase:
    name: str
    kind: str
    """The recording of hosts that are well."""
    change: Sequence[Mapping[str, Any]]
    sick: frozenset[str]
    told: bool
    """A warning is enough."""
    warn: bool
    """The hosts are sound, and a warning does no harm."""
    half: Half

    def worth(self, report: Report) -> Worth:
        """`false`: sound hosts are accused; `wrong`: others than the sick; `silent`: nobody, or not all."""
        faults = {host for fault in report.faults for host in fault.hosts}
        named = faults | {host for finding in report.trouble for host in finding.hosts}
        if not self.sick:
            accused = faults if self.warn else named
            return "false" if accused else "right" if report.exit_code == 0 else "silent"
        if named - self.sick:
            return "wrong"
        return "right" if (named if self.told else faults == self.sick) else "silent"


def cluster_cases() -> list[ClusterCase]:
    rows: Mapping[str, Mapping[str, Any]] = yaml.safe_load((FOLDER / "want.yaml").read_text())
    drawn = halves(rows)
    return [
        ClusterCase(
            name,
            row["of"],
            row["change"],
            frozenset(row.get("sick", ())),
            row.get("told", False),
            row.get("warn", False),
            drawn[name],
        )
        for name, row in rows.items()
    ]


def read_clusters(cases: Iterable[ClusterCase]) -> dict[str, Recording]:
    from doctor.recording import FILE

    read = {}
    for case in cases:
        file = ROOT / "tests/samples/recordings" / f"{case.kind}.run.json.gz"
        recorded = json.loads(gzip.decompress(file.read_bytes()))
        for host, own in _places(case.change, recorded):
            _write(own, recorded["heard"][host])
        read[case.name] = FILE.decoded(json.dumps(recorded).encode(), file)
    return read


def _places(changes: Iterable[Mapping[str, Any]], recorded: Any) -> Iterator[tuple[str, Mapping[str, Any]]]:
    for change in changes:
        for host in recorded["heard"] if change["host"] == "all" else (change["host"],):
            yield host, change


def _write(change: Mapping[str, Any], heard: dict[str, Any]) -> None:
    """What a change says, into the answer of a host."""
    fact = change["fact"]
    heard["missing"].pop(fact, None)
    capture = heard["captures"].get(
        fact, {"fact": fact, "rc": 0, "stdout": "", "stderr": "", "truncated": False}
    )
    old = text = capture["stdout"]
    if "text" in change:
        text = change["text"]
    if "add" in change:
        text = f"{text.rstrip()}\n{change['add']}\n"
    if "sub" in change:
        pattern, replacement = change["sub"]
        text = re.sub(pattern, replacement, text)
    if "later" in change:
        text = str(float(text) + change["later"])
    if "logged" in change:
        uptime = float(text.split()[1])
        text = f"{text.rstrip()}\n[{uptime - 60:12.6f}] {change['logged']}\n"
    assert text != old, change
    heard["captures"][fact] = capture | {"stdout": text, "rc": change.get("rc", capture["rc"])}
