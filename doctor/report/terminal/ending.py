"""The end of the terminal report: the culprits, and what to do first."""

from __future__ import annotations

from rich.console import Console
from rich.text import Text

from doctor.errors import EXIT_FAULT
from doctor.judge.verdict import Report
from doctor.model import Status, Verdict
from doctor.report.go import table_note
from doctor.report.headline import NOBODY, are_counted, culprit, last_line
from doctor.report.rerun import for_one_more_host, for_the_rest
from doctor.report.similar_faults import fold_faults
from doctor.report.terminal.opening import count
from doctor.report.terminal.page import columns, put_line, put_wrapped
from doctor.text.printable import clean_line
from doctor.text.speech import sign, t

_STYLE = {Verdict.HEALTHY: "bold green", Verdict.FAULTY: "bold red", Verdict.INCONCLUSIVE: "bold cyan"}
_STATUS = (("fail", "failed"), ("warn", "warned"), ("unknown", "not decided"), ("crash", "broke"))


def print_ending(report: Report, console: Console) -> None:
    warned = any(finding.status is Status.WARN for finding in report.findings)
    style = "bold yellow" if report.verdict is Verdict.HEALTHY and warned else _STYLE[report.verdict]
    line = Text.assemble(
        (clean_line(t(last_line(report))), style), (sign(" ") + t(_amount_examined(report)), "dim")
    )
    put_wrapped(line, console, wide=True, whole=True)
    if report.rules.need_hosts is not None:
        enough = f"{len(report.healthy_hosts)} healthy hosts remain, {report.rules.need_hosts} are needed"
        said = t(f"{enough}: {'go' if report.exit_code == 0 else 'no go'}.")
        put_line(Text(said, style="bold"), console)
    for note in table_note(report):
        put_wrapped(Text(t(f"{clean_line(note[:1].upper() + note[1:])}.")), console)
    _print_next(report, console)


def _amount_examined(report: Report) -> str:
    """How much was examined, and how long that took."""
    counts = report.counts()
    skipped = {result.check for result in report.results if result.status is Status.SKIP}
    looked = {result.check for result in report.results if result.status is not Status.SKIP}
    applies = count(len(looked or skipped), "check")
    rest = [f"{counts[status]} {word}" for status, word in _STATUS if counts[status]]
    took = f"{report.run.seconds:.1f} s."
    if report.checks.none_applied:
        return took
    if rest or not looked:
        done = sum(counts.values()) - counts["skip"]
        split = ", ".join([f"{counts['pass']} passed", *rest])
        return f"{applies}, {count(done, 'result')}: {split}; {took}"
    return f"{applies} {'applies' if len(looked) == 1 else 'apply'} and all pass; {took}"


def _print_next(report: Report, console: Console) -> None:
    """Prints what to mend first; a warning is only to be looked at."""
    if report.run.stopped_by is not None and report.run.outstanding:
        left = f"{for_the_rest(report)}    {t('(those that had not answered)')}"
        put_line(Text.assemble((t("Next: "), "dim"), clean_line(left)), console)
        return
    found = [finding for finding in report.findings if finding.status in (Status.FAIL, Status.WARN)]
    if found:
        first = fold_faults(found)[0].first
        who = culprit(first, report.called)
        who = f"{first.check} on {who}" if are_counted(first.hosts) else who
        todo = "Fix first" if report.rules.faults(first) else "Look at"
        named = Text("" if who == NOBODY else t(f"{todo}: {clean_line(who)}."), "bold")
        more = Text.assemble((t("More: "), "dim"), clean_line(f"doctor explain {first.check}"))
        if named and named.cell_len + 3 + more.cell_len > columns(console):
            put_wrapped(named, console)
            named = Text()
        put_line(named + Text("   " if named else "") + more, console)
        _print_others(report, console)
    elif lacks := [each.named for each in report.checks.unapplied if each.several]:
        put_line(Text.assemble((t("Type: "), "dim"), clean_line(for_one_more_host(report, lacks))), console)
    elif report.verdict is Verdict.INCONCLUSIVE:
        put_line(Text.assemble((t("Next: "), "dim"), t("see what was not examined, above")), console)


def _print_others(report: Report, console: Console) -> None:
    """Prints how a job starts without the faulty hosts, if nobody has decided that yet."""
    healthy = len(report.healthy_hosts)
    wanted = report.run.command == "preflight" and report.rules.need_hosts is None
    if wanted and healthy > 1 and report.exit_code == EXIT_FAULT and report.enough_hosts(healthy):
        others = f"{healthy} other hosts are healthy; go on with them: --need-hosts {healthy}"
        put_line(Text(t(others)), console)
