"""`doctor facts`: shows the facts of the hosts side by side; judges only whether the hosts answered."""

import sys
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TextIO

from doctor.cli.defaults import with_defaults
from doctor.errors import DoctorError, UsageError
from doctor.exam.examination import run_and_judge
from doctor.exam.request import Request
from doctor.judge.fact_values import ASKED
from doctor.judge.verdict import Report
from doctor.recording import save
from doctor.report.out.facts import facts_csv, facts_html, facts_json, facts_markdown
from doctor.report.out.formats import STDOUT
from doctor.report.out.outputs import refuse_unwritable, tell_who_reads
from doctor.report.terminal.facts import print_facts
from doctor.text.console import drawn
from doctor.text.outfile import write_file
from doctor.text.terminal import coloured, put, width


def tell_facts(request: Request, csv: Path | None) -> int:
    outputs = request.outputs
    on_stdout = [form.option for form, path in outputs.files() if path == STDOUT]
    if csv == STDOUT and on_stdout:
        raise UsageError(
            f"{on_stdout[0]} - and --csv - both write to stdout.", "Name a file for one of them."
        )
    others = {"--save": request.save, "--csv": None if csv == STDOUT else csv}
    refuse_unwritable(request.outputs, others, request.inputs())
    what = replace(request.what, exam="host", mesh="none", strict=True)
    reading, report = run_and_judge(replace(with_defaults(request), what=what), ASKED)
    out = sys.stderr if on_stdout or csv == STDOUT else sys.stdout
    writes: list[tuple[Path | str | None, Callable[[Path], object]]] = [
        ("stdout", lambda _: put(_drawn(report, request, out), out, drawn=True)),
        (request.save, lambda path: save(reading.recording, path)),
        (outputs.json, lambda path: _write(path, facts_json(report))),
        (outputs.html, lambda path: _write(path, facts_html(report))),
        (outputs.markdown, lambda path: _write(path, facts_markdown(report))),
        (csv, lambda path: _write(path, facts_csv(report))),
    ]
    failed = [why for where, write in writes if where is not None and (why := _failure(where, write))]
    if failed:
        raise DoctorError("\n".join(failed))
    tell_who_reads(outputs)
    return report.exit_code


def _write(path: Path, data: bytes) -> None:
    if path == STDOUT:
        put(data.decode(), sys.stdout)
    else:
        write_file(path, data)


def _failure(where: Path | str, write: Callable[[Path], object]) -> str:
    """Why the file was not written, else empty; a file that cannot be written does not stop the others."""
    try:
        write(Path(where))
    except OSError as error:
        return f"{where} could not be written: {error.strerror}."
    return ""


def _drawn(report: Report, request: Request, out: TextIO) -> str:
    outputs = request.outputs
    show = partial(print_facts, report, verbose=outputs.verbose, quiet=outputs.quiet)
    return drawn(show, width(out), colour=coloured(out, outputs.colours))
