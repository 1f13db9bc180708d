"""What a run can write. A format of the report is one field of Outputs: its option and its writer.

The text for the terminal is the only format without an option. A new format needs a module that turns a
Report into bytes, and a field here. --help reads this module, so writers are imported when they are used.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, fields
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from doctor.text.option import HELP, IN_JOB, KEY, Option, option
from doctor.text.printable import clean_line
from doctor.text.terminal import AUTO, NEVER, WHEN

if TYPE_CHECKING:
    from doctor.judge.verdict import Report
    from doctor.report.files.envelope import Envelope
    from doctor.report.page.card import Page

Keep = Callable[..., dict[str, Path]]
STDOUT = Path("-")
FORMAT = "format"


@dataclass(frozen=True, slots=True)
class Format:
    option: str
    write: Callable[[Report], bytes]
    of_envelope: Callable[[Envelope], bytes] | None = None
    """Writes the report of any command; None if only an examination has this format."""
    stdout: bool = False
    """Whether it may be written to stdout."""
    suffix: str = ""
    """The suffix of its file in --report-dir; empty if it has no file there."""
    is_go: bool = False
    """Whether jobs are started from its content."""
    for_all: bool = False
    """Whether a service of another user reads it."""


def _format(usage: str, write: Callable[[Report], bytes], **more: Any) -> Any:
    made = Option(usage, HELP[usage], not_with=())
    return field(default=None, metadata={KEY: made, FORMAT: Format(made.name, write, **more)})


def _of_envelope(usage: str, write: Callable[[Envelope], bytes], **more: Any) -> Any:
    """A format that every command can write."""
    return _format(usage, partial(_of_check, write), of_envelope=write, **more)


def _of_check(write: Callable[[Envelope], bytes], report: Report) -> bytes:
    from doctor.report.files.json import check_report

    return write(check_report(report))


def _json(envelope: Envelope) -> bytes:
    from doctor.report.files.envelope import as_json

    return as_json(envelope)


json_of = partial(_of_check, _json)


def _junit(envelope: Envelope) -> bytes:
    from doctor.report.files.junit import as_junit

    return as_junit(envelope)


def _prometheus(envelope: Envelope) -> bytes:
    from doctor.report.files.prometheus import as_prometheus

    return as_prometheus(envelope)


def markdown_of(page: Page) -> bytes:
    from doctor.report.markdown.page import as_markdown

    return as_markdown(page)


def html_of(page: Page) -> bytes:
    from doctor.report.html.page import as_html

    return as_html(page)


def _of_page(medium: str, write: Callable[[Page], bytes], report: Report) -> bytes:
    from doctor.report.page.card import Medium
    from doctor.report.page.examination import page_of

    return write(page_of(report, Medium[medium]))


check_markdown, check_html = partial(_of_page, "MARKDOWN", markdown_of), partial(_of_page, "HTML", html_of)


def lines(names: Sequence[str]) -> bytes:
    return "".join(f"{clean_line(name)}\n" for name in names).encode()


@dataclass(frozen=True, slots=True)
class Outputs:
    """The outputs that were asked for. If a format or --print uses stdout, the text goes to stderr."""

    PANEL: ClassVar[str] = "Output"

    json: Path | None = _of_envelope("--json FILE", _json, stdout=True, suffix=".json")
    html: Path | None = _format("--html FILE", check_html, stdout=True, suffix=".html")
    junit: Path | None = _of_envelope("--junit FILE", _junit, stdout=True, suffix=".junit.xml")
    markdown: Path | None = _format("--markdown FILE", check_markdown, stdout=True, suffix=".md")
    prometheus: Path | None = _of_envelope("--prometheus FILE", _prometheus, stdout=True, for_all=True)
    healthy_hosts: Path | None = _format(
        "--healthy-hosts FILE",
        lambda report: lines(() if report.run.stopped_by is not None else report.healthy_hosts),
        is_go=True,
    )
    faulty_hosts: Path | None = _format("--faulty-hosts FILE", lambda report: lines(report.other_hosts))
    launch: str | None = option("--print launch[=FORM]", not_with=())
    report_dir: Path | None = option("--report-dir DIR", not_with=())
    per_host: Path | None = option("--per-host DIR", not_with=())
    shadow: Path | None = option("--shadow FILE", not_with=(IN_JOB,))
    quiet: bool = option("-q, --quiet", not_with=(), default=False)
    verbose: bool = option("-v, --verbose", not_with=(), default=False)
    color: str = option("--color WHEN", not_with=(), default=AUTO, values=WHEN)
    no_color: bool = option("--no-color", not_with=(), default=False)
    keep: Keep | None = None
    """Writes the files of `report_dir` in place of `add_files`: `check --notify` tells then what is new."""
    more: tuple[Any, ...] = ()
    """Formats that only one command has."""

    @property
    def colours(self) -> str:
        """One of WHEN."""
        return NEVER if self.no_color else self.color

    @property
    def starts_jobs(self) -> bool:
        """Whether the hosts that start the job are asked for."""
        return self.launch is not None or self.report_dir is not None

    @property
    def for_a_script(self) -> bool:
        """Whether the output probably goes to the log of a script, where nobody reads a whole report."""
        return self.quiet or self.starts_jobs

    def files(self) -> Iterator[tuple[Format, Path]]:
        """The formats that were asked for, and their paths."""
        for each in fields(self):
            path = getattr(self, each.name)
            if FORMAT in each.metadata and path is not None:
                yield each.metadata[FORMAT], path
        yield from self.more


FORMATS: tuple[Format, ...] = tuple(
    each.metadata[FORMAT] for each in fields(Outputs) if FORMAT in each.metadata
)
