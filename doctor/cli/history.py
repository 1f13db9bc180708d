"""`doctor history DIR`: what the runs in folders say together; touches no host."""

from __future__ import annotations

from dataclasses import MISSING, dataclass
from functools import partial
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
    folders: tuple[Path, ...] = any_option("DIR...", default=MISSING)
    fail_after: int = any_option("--fail-after N", default=2, min=1)
    clear_after: int = any_option("--clear-after N", default=3, min=1)
    most_drained: str | None = any_option("--most-drained N|N%")
    as_: str | None = any_option("--as slurm|kubernetes|plain", values=("slurm", "kubernetes", "plain"))
    notify: str | None = any_option(
        "--notify COMMAND",
        "Run this if the last run changed what a machine is called; the page is its stdin.",
    )


@takes(*SHOWN)
def history(request: Request, wishes: HistoryWishes) -> int:
    from doctor.exam.notify import notified
    from doctor.history.drain import drained, lines_as, most_of
    from doctor.history.fleet import OF_NODE, Fleet
    from doctor.history.kept import find_runs
    from doctor.history.report import beyond, exit_code_of, history_report, new_of, page_of
    from doctor.history.shadow import shadowed
    from doctor.history.suspects import suspect
    from doctor.judge.playbook import load_exam
    from doctor.judge.registry import find_checks
    from doctor.model import Severity
    from doctor.report.out.outputs import refuse_unwritable
    from doctor.report.out.pages import show_page, terminal_of, write_page
    from doctor.report.terminal.cards import print_page
    from doctor.text.announce import announce
    from doctor.text.console import drawn
    from doctor.text.terminal import WIDTH, put

    refuse_unwritable(request.outputs, {}, [("DIR", each) for each in wishes.folders])
    for folder in wishes.folders:
        if not folder.is_dir():
            raise UsageError(f"{folder}: is not a folder.", "Name folders of --report-dir or of doctor run.")
    exam = load_exam(OF_NODE, find_checks(request.what.checks).checks)
    checks = (check for check in find_checks(request.what.checks).checks if check.id in exam.checks)
    of_node = [each.id for each in checks if exam.severity.get(each.id, each.severity) is Severity.FAIL]
    kept = find_runs(wishes.folders)
    if wishes.as_ is not None and kept.open_to_others:
        raise UsageError(f"{kept.open_to_others[0]}, and --as drains by them.", "Close it: chmod go-w DIR.")
    fleet = Fleet(frozenset((*of_node, *TRAINED)), (wishes.fail_after, wishes.clear_after))
    for report in kept.runs():
        fleet.add(report)
    suspect(fleet.machines)
    fleet.shadow = sorted(shadowed(kept).values(), key=lambda each: (-each.drained, -each.wrong, each.name))
    current = fleet.current()
    found = drained(current, most_of(wishes.most_drained, len(current)))
    page = page_of(wishes.folders, kept, fleet, found)
    if wishes.as_ is None:
        show_page(page, request.outputs)
    else:
        put("".join(f"{line}\n" for line in lines_as(wishes.as_, found)), terminal_of(request.outputs))
    if found.withheld:
        announce(beyond(found))
    write_page(page, request.outputs, history_report(wishes.folders, kept, fleet, found))
    if wishes.notify and (news := new_of(found, fleet.examined)):
        notified(wishes.notify, news, drawn(partial(print_page, page), WIDTH, colour=False))
    return exit_code_of(fleet, found)
