"""`doctor diff A B`: compares two runs that were kept; touches no host."""

from __future__ import annotations

from dataclasses import MISSING, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from doctor.cli.options import takes
from doctor.exam.request import Request
from doctor.text.option import any_option

if TYPE_CHECKING:
    from doctor.judge.verdict import Report
    from doctor.recording import Recording

SHOWN = (
    *("--json", "--html", "--junit", "--markdown", "--quiet", "--verbose", "--color", "--no-color"),
    "--checks",
)


@dataclass(frozen=True, slots=True)
class DiffWishes:
    before: Path = any_option("BEFORE", default=MISSING)
    after: Path = any_option("AFTER", default=MISSING)


@takes(*SHOWN)
def diff(request: Request, wishes: DiffWishes) -> int:
    from doctor.diff.compare import difference
    from doctor.diff.report import diff_report, page_of
    from doctor.diff.saved import read_run
    from doctor.exam.examination import judge_again
    from doctor.exam.way import as_recorded
    from doctor.report.out.outputs import refuse_unwritable
    from doctor.report.out.pages import show_page, write_page

    refuse_unwritable(request.outputs, {}, [("BEFORE", wishes.before), ("AFTER", wishes.after)])

    def judged(recorded: Recording) -> Report:
        return judge_again(as_recorded(replace(request, command=recorded.command), recorded), recorded)[1]

    found = difference(read_run(wishes.before, judged), read_run(wishes.after, judged))
    page = page_of(found)
    show_page(page, request.outputs)
    write_page(page, request.outputs, diff_report(found))
    return found.exit_code
