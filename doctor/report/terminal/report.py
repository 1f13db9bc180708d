"""The report of an examination in a terminal: what was looked at, the cards, what is healthy, the verdict."""

from collections.abc import Sequence
from dataclasses import replace

from rich.console import Console
from rich.text import Text

from doctor.errors import EXIT_FAULT
from doctor.job.plan import JobPlan
from doctor.judge.verdict import Report, RunInfo
from doctor.model import Status, Verdict
from doctor.report.page.card import Medium
from doctor.report.page.examination import looked_again, seen_inside, unexamined
from doctor.report.page.fault import fault_cards, fold_faults
from doctor.report.page.headline import last_line
from doctor.report.page.measurements import Measurement, measured, passed_lines
from doctor.report.page.names import NOBODY, are_counted, culprit
from doctor.report.page.rerun import again, for_one_more_host, for_the_rest
from doctor.report.start.go import table_note
from doctor.report.terminal.cards import print_card, print_part, shown_cards
from doctor.report.terminal.hosts import print_hosts
from doctor.report.terminal.page import CleanHook, columns, put_line, put_wrapped, wrapped
from doctor.report.terminal.smoke import print_smoke
from doctor.text.nodeset import cut, fold
from doctor.text.printable import clean_line
from doctor.text.speech import sign, t, t_list
from doctor.text.wrap import cells, padded

LONGEST = 400
"""The most characters of the names of all hosts."""
TICK, DOUBT, DASH = "✓", "?", "–"
_STYLE = {Verdict.HEALTHY: "bold green", Verdict.FAULTY: "bold red", Verdict.INCONCLUSIVE: "bold cyan"}
_STATUS = (("fail", "failed"), ("warn", "warned"), ("unknown", "not decided"), ("crash", "broke"))


def print_report(report: Report, console: Console, *, verbose: bool = False, quiet: bool = False) -> None:
    """`verbose` shows each finding by itself, with evidence; `quiet` shows only faults and the last line."""
    console.push_render_hook(CleanHook())
    if not quiet:
        _print_opening(report, console)
    on = Medium.VERBOSE if verbose else Medium.BRIEF
    for card in shown_cards(fault_cards(report, apart=verbose), on):
        console.print()
        print_card(card, console, on)
    if not quiet:
        print_smoke(report, console, verbose=verbose)
        _print_well(report, console, verbose=verbose)
    if report.again:
        console.print()
        print_part(looked_again(report), console, on)
    left = unexamined(report)
    if left.pairs and (not quiet or report.verdict is Verdict.INCONCLUSIVE):
        console.print()
        print_part(left, console, on)
    if not quiet:
        print_hosts(report, console, verbose=verbose)
    if report.findings or not quiet:
        console.print()
    _print_ending(report, console)


def _print_opening(report: Report, console: Console) -> None:
    plan, running, way = report.plan, report.seen.running, report.run.way
    if plan.hosts:
        hosts = clean_line(t(_whom(plan, report.run)))
        said = " · ".join(map(t, _each(report) if plan.of_node else _job(plan)))
        put_wrapped(Text.assemble((hosts, "bold"), (clean_line(said), "dim")), console, wide=True)
    lines = [f"launch: {plan.launch}"] if plan.launch else []
    if running:
        look = f"{again(report, 'hang', hosts=running)} says whether it hangs"
        lines.append(f"a job runs on {fold(running)}: {look}")
    lines.append(seen_inside(report))
    lines += [f"defaults from {way.defaults}"] if way and way.defaults else []
    for line in filter(None, lines):
        put_wrapped(Text(clean_line(t(line)), style="dim"), console, wide=True)


def _each(report: Report) -> tuple[str, ...]:
    """Hosts that are examined for no job in particular, and the version of the list of checks."""
    return ("", count(len(report.plan.hosts), "host"), f"{report.run.exam}/{report.run.exam_version}")


def _job(plan: JobPlan) -> tuple[str, ...]:
    per_host = {host.ranks for host in plan.hosts if host.ranks}
    ranks = count(plan.ranks, "rank")
    if len(per_host) == 1:
        one = next(iter(per_host))
        ranks += f" ({one.value} a host, {one.source})"
    hosts = count(len(plan.hosts), "host")
    head, port = plan.head, plan.master_port
    sources = head.source if head.source == port.source else f"{head.source}, {port.source} port"
    place = f"head {head.value}:{port.value} ({sources})"
    return ("", hosts, ranks, f"backend {plan.carrier}", place)


def _whom(plan: JobPlan, run: RunInfo) -> str:
    """The hosts by name, since a shell, a variable or a file may have named others than the user meant."""
    names = cut(fold(plan.names), LONGEST)
    said = (f"({run.hosts_from})",) if run.hosts_from else ()
    return " ".join(("this machine only,", names, *said) if run.transport == "local" else (names, *said))


def count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _print_well(report: Report, console: Console, *, verbose: bool = False) -> None:
    """Prints ticks only if the verdict is healthy; with `verbose` also what passed, whatever the verdict."""
    if report.verdict is Verdict.HEALTHY:
        seen = measured(report)
        if seen.ticked or seen.doubtful:
            console.print()
            label = max(cells(t(each.area)) for each in (*seen.ticked, *seen.doubtful, *seen.untried))
            _print_lines(_spoken(seen.ticked), (TICK, "bold green"), label, console)
            _print_lines(_spoken(seen.doubtful), (DOUBT, "bold cyan"), label, console)
            _print_lines(_spoken(seen.untried), (DASH, "bold yellow"), label, console)
    if verbose and (lines := passed_lines(report)):
        console.print()
        put_line(Text(t("Passed"), style="bold"), console)
        spoken = _spoken(lines)
        _print_lines(spoken, (" ", ""), max(cells(each.area) for each in spoken), console)


def _spoken(lines: Sequence[Measurement]) -> list[Measurement]:
    return [replace(each, area=t(each.area), text=t_list(each.text)) for each in lines]


def _print_lines(lines: Sequence[Measurement], mark: tuple[str, str], label: int, console: Console) -> None:
    if columns(console) < 2 * label:
        label = 0  # no room for a second column
    for each in lines:
        indent = label + 6
        area = padded(each.area, label) if label else f"{each.area}:"
        text = Text(clean_line(each.text))
        if not label:
            text = Text(area + " ") + text
        for number, line in enumerate(wrapped(text, console, indent if label else 6)):
            if number:
                put_line(Text(" " * (indent if label else 6)) + line, console)
            else:
                head = Text.assemble("  ", mark, " ", (area + "  ", "dim") if label else "")
                put_line(head + line, console)


def _print_ending(report: Report, console: Console) -> None:
    warned = any(finding.status is Status.WARN for finding in report.findings)
    style = "bold yellow" if report.verdict is Verdict.HEALTHY and warned else _STYLE[report.verdict]
    line = Text.assemble(
        (clean_line(t(last_line(report))), style), (sign(" ") + t(_amount_examined(report)), "dim")
    )
    put_wrapped(line, console, wide=True, whole=True)
    if report.rules.need_hosts is not None:
        left, needed = len(report.healthy_hosts), report.rules.need_hosts
        remain = "host remains" if left == 1 else "hosts remain"
        enough = f"{left} healthy {remain}, {needed} {'is' if needed == 1 else 'are'} needed"
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
