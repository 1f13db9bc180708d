"""A run to compare, from its file: a recording, which is judged by this version, or a JSON report."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import msgspec

from doctor.errors import UsageError
from doctor.facts.smoke import JudgedRun
from doctor.judge.verdict import Report
from doctor.recording import Recording, load
from doctor.report.files.envelope import FindingEntry, ResultEntry, as_json
from doctor.report.files.json import check_report
from doctor.savedrun import read_saved
from doctor.targets.inputkind import InputKind, input_kind
from doctor.text.nodeset import is_host
from doctor.text.printable import clean_line

FILES = "Files of --save, --json or --report-dir, of check, smoke, preflight and facts, or such a folder."
OF_RUNS = ("*.run.json", "*.run.json.gz", "*.json")
JUDGED = ("check", "smoke", "preflight", "accept", "facts", "")


class _Run(msgspec.Struct, frozen=True):
    started: str
    command: str = ""
    exam: str | None = None


class _Host(msgspec.Struct, frozen=True):
    name: str
    status: str = ""
    reason: str | None = None
    facts: dict[str, str | int | float | list[str | int | float]] = {}


class _File(msgspec.Struct, frozen=True):
    """What is read of a report; that of `doctor facts` has no findings."""

    run: _Run
    hosts: tuple[_Host, ...]
    findings: tuple[FindingEntry, ...] = ()
    results: tuple[ResultEntry, ...] = ()


@dataclass(frozen=True, slots=True)
class Saved:
    """A run as it was kept."""

    path: Path
    started: str
    hosts: tuple[_Host, ...]
    findings: tuple[FindingEntry, ...]
    results: tuple[ResultEntry, ...]
    training: JudgedRun | None = None
    """The first smoke run that came to its end, of a recording."""


def read_run(path: Path, judge: Callable[[Recording], Report]) -> Saved:
    """The run of a file, or the newest of a folder. Raises UsageError and InputErrors."""
    file = _newest(path) if path.is_dir() else path
    raw, runs = read_saved(file), ()  # type: bytes, tuple[JudgedRun, ...]
    if input_kind(raw.decode(errors="replace")) is InputKind.RECORDING:
        report = judge(load(file))
        raw, runs = as_json(check_report(report)), report.training.runs
    try:
        found: _File = msgspec.json.decode(raw, type=_File)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise UsageError(f"{file}: is not a run to compare ({clean_line(str(error))}).", FILES) from None
    if found.run.command not in JUDGED:
        raise UsageError(f"{file}: is a report of doctor {clean_line(found.run.command)}.", FILES)
    names = {host.name for host in found.hosts}
    mentioned = {host for each in found.findings for host in each.hosts}
    mentioned |= {host for each in found.results for host in each.hosts}
    if len(names) < len(found.hosts) or not all(map(is_host, names)) or not mentioned <= names:
        raise UsageError(f"{file}: is a damaged report: its hosts do not add up.")
    whole = next((run for run in runs if run.result.end.kind == "done"), None)
    return Saved(file, found.run.started, found.hosts, found.findings, found.results, whole)


def _newest(folder: Path) -> Path:
    """The newest run of a folder of runs, by the time in the names of its files."""
    for form in OF_RUNS:
        if found := sorted(folder.glob(form)) or sorted(folder.glob(f"*/{form}")):
            return found[-1]
    raise UsageError(f"{folder}: no run is in this folder.", FILES)
