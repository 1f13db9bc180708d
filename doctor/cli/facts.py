"""`doctor facts`: shows the facts of the hosts side by side; judges only whether the hosts answered."""

import sys
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path

from doctor.cli.defaults import with_defaults
from doctor.errors import UsageError
from doctor.exam.examination import run_and_judge
from doctor.exam.request import Request
from doctor.judge.fact_values import ASKED
from doctor.judge.verdict import Report
from doctor.recording import save
from doctor.report.out.facts import facts_csv, facts_json
from doctor.report.out.formats import STDOUT, html_of, markdown_of
from doctor.report.out.outputs import Attempts, refuse_unwritable, tell_who_reads
from doctor.report.page.card import Medium
from doctor.report.page.facts import facts_page
from doctor.report.terminal.facts import print_facts
from doctor.text.console import draw

WRITERS: Mapping[str, Callable[[Report], bytes]] = {
    "--json": facts_json,
    "--html": lambda report: html_of(facts_page(report, Medium.HTML)),
    "--markdown": lambda report: markdown_of(facts_page(report, Medium.MARKDOWN)),
}


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
    show = partial(print_facts, report, verbose=outputs.verbose, quiet=outputs.quiet)
    attempt = Attempts()
    attempt("stdout", partial(draw, show, out, outputs.colours))
    if request.save is not None:
        attempt(request.save, partial(save, reading.recording, request.save))
    for form, path in outputs.files():
        attempt.write(path, WRITERS[form.option](report))
    if csv is not None:
        attempt.write(csv, facts_csv(report))
    attempt.settle()
    tell_who_reads(outputs)
    return report.exit_code
