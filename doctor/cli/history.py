"""`doctor history DIR`: what the runs in folders say together; touches no host."""

from __future__ import annotations

from dataclasses import MISSING, dataclass
from pathlib import Path

from doctor.cli.diff import SHOWN
from doctor.cli.options import takes
from doctor.errors import UsageError
from doctor.exam.request import Request
from doctor.text.option import any_option

TRAINED = ("smoke-corruption", "smoke-collective-wrong", "smoke-desync", "smoke-hang")
"""The checks of a training that accuse a machine, beside those that fail in the exam of a node."""


@dataclass(frozen=True, slots=True)
class HistoryWishes:
    folders: tuple[Path, ...] = any_option(
        "DIR...", "Folders of --report-dir or of doctor run.", default=MISSING
    )


@takes(*SHOWN)
def history(request: Request, wishes: HistoryWishes) -> int:
    from doctor.history.fleet import Fleet
    from doctor.history.kept import find_runs
    from doctor.history.report import exit_code_of, history_report, page_of
    from doctor.history.suspects import suspect
    from doctor.judge.playbook import load_exam
    from doctor.judge.registry import find_checks
    from doctor.model import Severity
    from doctor.report.out.outputs import refuse_unwritable
    from doctor.report.out.pages import show_page, write_page

    refuse_unwritable(request.outputs, {}, [("DIR", each) for each in wishes.folders])
    for folder in wishes.folders:
        if not folder.is_dir():
            raise UsageError(f"{folder}: is not a folder.", "Name folders of --report-dir or of doctor run.")
    exam = load_exam("node", find_checks(request.what.checks).checks)
    checks = (check for check in find_checks(request.what.checks).checks if check.id in exam.checks)
    of_node = [each.id for each in checks if exam.severity.get(each.id, each.severity) is Severity.FAIL]
    kept = find_runs(wishes.folders)
    fleet = Fleet(frozenset((*of_node, *TRAINED)))
    for report in kept.runs():
        fleet.add(report)
    suspect(fleet.machines)
    page = page_of(wishes.folders, kept, fleet)
    show_page(page, request.outputs)
    write_page(page, request.outputs, history_report(wishes.folders, kept, fleet))
    return exit_code_of(fleet)
