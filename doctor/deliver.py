"""The report, in every form that was asked for, to every place that was named."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

from doctor.errors import DoctorError, UsageError
from doctor.recording import Recording, save
from doctor.report.json import as_json
from doctor.terminal import put, width
from doctor.verdict import Report

STDOUT = "-"


@dataclass(frozen=True, slots=True)
class Outputs:
    """What was asked for. `json` "-" is stdout, and the terminal report then goes to stderr."""

    save: Path | None = None
    json: str | None = None
    healthy_hosts: Path | None = None
    faulty_hosts: Path | None = None
    quiet: bool = False
    verbose: bool = False
    no_color: bool = False


def refuse_unwritable(outputs: Outputs) -> None:
    """Before the run: a report that cannot be written at its end would be lost."""
    named: dict[Path, str] = {}
    files = {
        "--save": outputs.save,
        "--json": Path(outputs.json) if outputs.json and outputs.json != STDOUT else None,
        "--healthy-hosts": outputs.healthy_hosts,
        "--faulty-hosts": outputs.faulty_hosts,
    }
    for option, path in files.items():
        if path is None:
            continue
        if str(path) == STDOUT:
            raise UsageError("Only --json can write to stdout.", f"Name a file for {option}.")
        folder = path.parent
        if path.is_dir() or not folder.is_dir() or not os.access(path if path.exists() else folder, os.W_OK):
            raise UsageError(f"{path}: cannot be written.", "Name a file in a folder that is writable.")
        if path.resolve() in named and path.exists() is path.is_file():
            raise UsageError(f"{option} and {named[path.resolve()]} name the same file, {path}.")
        named[path.resolve()] = option


def show(report: Report, outputs: Outputs, out: TextIO) -> None:
    """The report for a person."""
    put(_rendered(report, outputs, out is not None and out.isatty(), width(out)), out)


def deliver(report: Report, recording: Recording | None, outputs: Outputs) -> None:
    """The terminal first; a file that cannot be written loses only itself, and is told at the end."""
    failed: list[str] = []

    def attempt(path: Path | None, write: Callable[[Path], object]) -> None:
        if path is not None:
            try:
                write(path)
            except OSError as error:
                failed.append(f"{path} could not be written: {error.strerror}.")

    if outputs.json == STDOUT:
        put(as_json(report).decode(), sys.stdout)
    try:
        show(report, outputs, sys.stderr if outputs.json == STDOUT else sys.stdout)
    except OSError as error:
        failed.append(f"The terminal report could not be written: {error.strerror}.")
    if recording is not None:
        attempt(outputs.save, lambda path: save(recording, path))
    if outputs.json and outputs.json != STDOUT:
        attempt(Path(outputs.json), lambda path: path.write_bytes(as_json(report)))
    healthy = () if report.stopped_by is not None else report.healthy_hosts
    attempt(outputs.healthy_hosts, lambda path: path.write_text(_lines(healthy)))
    attempt(outputs.faulty_hosts, lambda path: path.write_text(_lines(report.other_hosts)))
    if failed:
        raise DoctorError("\n".join(failed), f"The verdict was: {report.verdict.value}.")


def _rendered(report: Report, outputs: Outputs, terminal: bool, columns: int) -> str:
    from rich.console import Console

    from doctor.report.text import print_report

    buffer = io.StringIO()
    console = Console(
        file=buffer,
        force_terminal=terminal,
        no_color=outputs.no_color or None,
        width=columns,
        highlight=False,
        markup=False,
        emoji=False,
    )
    print_report(report, console, verbose=outputs.verbose, quiet=outputs.quiet)
    return buffer.getvalue()


def _lines(names: Sequence[str]) -> str:
    return "".join(f"{name}\n" for name in names)
