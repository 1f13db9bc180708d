"""What a run can write. A format of the report is one field of Outputs: its option, and what makes its bytes.

The text for the terminal is the one format without an option. A new format is a file that makes bytes of a
Report, and a field here; --help reads these, so that what they need is imported when they are written.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from doctor.text.option import KEY, Option, option
from doctor.text.printable import clean_line

if TYPE_CHECKING:
    from doctor.judge.verdict import Report

STDOUT = Path("-")
FORMAT = "format"


@dataclass(frozen=True, slots=True)
class Format:
    option: str
    write: Callable[[Report], bytes]
    stdout: bool
    """Whether it may be written to stdout."""
    suffix: str
    """Of its file in --report-dir; empty where it has none there."""
    is_go: bool
    """Whether somebody starts a job on what it holds."""


def _format(
    usage: str,
    help: str,
    write: Callable[[Report], bytes],
    *,
    stdout: bool = False,
    suffix: str = "",
    is_go: bool = False,
) -> Any:
    made = Option(usage, help, not_with=())
    return field(default=None, metadata={KEY: made, FORMAT: Format(made.name, write, stdout, suffix, is_go)})


def _json(report: Report) -> bytes:
    from doctor.report.json import as_json

    return as_json(report)


def lines(names: Sequence[str]) -> bytes:
    return "".join(f"{clean_line(name)}\n" for name in names).encode()


@dataclass(frozen=True, slots=True)
class Outputs:
    """What was asked for. Where stdout is taken by a format or by --print, the text goes to stderr."""

    json: Path | None = _format(
        "--json FILE", "The report as JSON; - is stdout.", _json, stdout=True, suffix=".json"
    )
    healthy_hosts: Path | None = _format(
        "--healthy-hosts FILE",
        "Write the healthy hosts' names.",
        lambda report: lines(() if report.stopped_by is not None else report.healthy_hosts),
        is_go=True,
    )
    faulty_hosts: Path | None = _format(
        "--faulty-hosts FILE",
        "Write the names of all other hosts.",
        lambda report: lines(report.other_hosts),
    )
    launch: str | None = option(
        "--print launch[=FORM]",
        "On a go, print the command that starts the job; all else on stderr.",
        not_with=(),
    )
    report_dir: Path | None = option(
        "--report-dir DIR", "The whole report, in files of this run alone.", not_with=()
    )
    quiet: bool = option(
        "-q, --quiet",
        "Print nothing when all is well, otherwise only the findings.",
        not_with=(),
        default=False,
    )
    verbose: bool = option("-v, --verbose", "With evidence.", not_with=(), default=False)
    no_color: bool = option("--no-color", "As NO_COLOR does.", not_with=(), default=False)

    @property
    def for_a_script(self) -> bool:
        """Whether nobody is likely to read the whole report where it appears."""
        return self.quiet or self.launch is not None or self.report_dir is not None

    def files(self) -> Iterator[tuple[Format, Path]]:
        """The formats that were asked for, and where to."""
        for each in fields(self):
            path = getattr(self, each.name)
            if FORMAT in each.metadata and path is not None:
                yield each.metadata[FORMAT], path


FORMATS: tuple[Format, ...] = tuple(
    each.metadata[FORMAT] for each in fields(Outputs) if FORMAT in each.metadata
)
