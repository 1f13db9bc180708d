"""The page of an examination: what was looked at, what is wrong, what was measured, what was left out."""

from collections.abc import Iterable, Iterator

from doctor.errors import EXIT_FAULT
from doctor.job.plan import JobPlan
from doctor.judge.again import RecheckState
from doctor.judge.verdict import Report, RunInfo
from doctor.model import Finding, Status, Verdict, View
from doctor.report.page import card
from doctor.report.page.connections import connections
from doctor.report.page.facts import fact_tables
from doctor.report.page.fault import fault_cards, fold_faults
from doctor.report.page.headline import last_line, verdict_word, whom
from doctor.report.page.host_rows import OK, host_rows
from doctor.report.page.measurements import RATES, measured, passed_lines, unjudged_rates
from doctor.report.page.names import NOBODY, are_counted, culprit
from doctor.report.page.rerun import again, for_one_more_host, for_the_rest, repeat
from doctor.report.page.tickets import tickets
from doctor.report.page.training import training_sections
from doctor.report.start.go import table_note
from doctor.rules.smoke import not_made
from doctor.smoke.onhost.bandwidthplan import pairs_apart
from doctor.text.grouped import grouped
from doctor.text.nodeset import cut, fold

LONGEST = 400
"""The most characters of the names of all hosts."""
REPLAY = "doctor check --replay RUN.json --html PAGE.html"
OF_REPLAY = "# RUN.json is what --save wrote, or the .run.json beside this page."
PAGES = card.Medium.HTML | card.Medium.MARKDOWN
_OTHERS = {"fail": "failed", "warn": "warned", "unknown": "not decided", "crash": "broke", "waived": "waived"}


def page_of(report: Report, on: card.Medium, *, quiet: bool = False) -> card.Page:
    """The page for one medium: what only others show is not made. With -v, each finding has its own card;
    `quiet`: nothing but findings and the conclusion.
    """
    name, kind = verdict_word(report)
    return card.Page(
        report.run.command,
        report.run.started,
        name,
        kind,
        whom(report),
        last_line(report),
        () if quiet else tuple(_about(report)),
        fault_cards(report, apart=on is card.Medium.VERBOSE),
        parts=tuple(_parts(report, on, quiet)),
        notes=tuple(f"{note[:1].upper()}{note[1:]}." for note in table_note(report)),
        aside=_amount_examined(report),
        after=tuple(_after(report)),
    )


def _parts(report: Report, on: card.Medium, quiet: bool) -> Iterator[card.Part]:
    if not quiet:
        yield from training_sections(report, on)
        yield from _measurements(report, on)
    if report.again:
        yield card.Pairs("Looked at again", tuple(_looked_again(report)), aligned=True)
    if (left := unexamined(report)).pairs and (not quiet or report.verdict is Verdict.INCONCLUSIVE):
        yield left
    if quiet:
        return
    rows = host_rows(report)
    if on in PAGES or (len(report.hosts) > 1 and any(row.verdict != OK for row in rows)):
        yield from (card.HostTable("Hosts", rows, report.called),) if rows else ()
    if on is card.Medium.HTML:
        if report.seen.mesh and report.seen.mesh.links:
            yield connections(report.seen.mesh, [host.name for host in report.hosts])
        if report.seen.facts:
            yield card.Section("Facts", parts=tuple(fact_tables(report, whole=True)))
    if on in PAGES:
        yield from _run(report)
    if on is card.Medium.MARKDOWN and report.faults:
        yield card.Section("Tickets", parts=tuple(tickets(report)))


def _about(report: Report) -> Iterator[tuple[str, str]]:
    plan, running, way = report.plan, report.seen.running, report.run.way
    of_node = count(len(plan.hosts), "host"), f"{report.run.exam}/{report.run.exam_version}"
    if plan.hosts:
        yield _hosts(plan, report.run), " · ".join(("", *(of_node if plan.of_node else _job(plan))))
    if plan.launch:
        yield "", f"launch: {plan.launch}"
    if running:
        look = f"{again(report, 'hang', hosts=running)} says whether it hangs"
        yield "", f"a job runs on {fold(running)}: {look}"
    if nodes := _nodes(report):
        yield "", nodes
    if inside := seen_inside(report):
        yield "", inside
    if way and way.defaults:
        yield "", f"defaults from {way.defaults}"


def _nodes(report: Report) -> str:
    """Which pods are on which node of the cluster."""
    on = grouped((host.node, host.name) for host in report.hosts if host.node)
    return cut(", ".join(f"{fold(names)} on {node}" for node, names in on.items()), LONGEST)


def _job(plan: JobPlan) -> tuple[str, ...]:
    per_host = {host.ranks for host in plan.hosts if host.ranks}
    ranks = count(plan.ranks, "rank")
    if len(per_host) == 1:
        one = next(iter(per_host))
        ranks += f" ({one.value} a host, {one.source})"
    head, port = plan.head, plan.master_port
    sources = head.source if head.source == port.source else f"{head.source}, {port.source} port"
    place = f"head {head.value}:{port.value} ({sources})"
    return count(len(plan.hosts), "host"), ranks, f"backend {plan.carrier}", place


def _hosts(plan: JobPlan, run: RunInfo) -> str:
    """The hosts by name, since a shell, a variable or a file may have named others than the user meant."""
    names = cut(fold(plan.names), LONGEST)
    said = (f"({run.hosts_from})",) if run.hosts_from else ()
    return " ".join(("this machine only,", names, *said) if run.transport == "local" else (names, *said))


def count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _measurements(report: Report, on: card.Medium) -> Iterator[card.Ticks]:
    """A terminal shows what was measured only if the verdict is healthy."""
    if on in PAGES or report.verdict is Verdict.HEALTHY:
        seen = measured(report)
        kinds = (
            (card.CardKind.GOOD, seen.ticked),
            (card.CardKind.OPEN, seen.doubtful),
            (card.CardKind.WARN, seen.untried),
        )
        told = tuple((kind, each.area, each.text) for kind, some in kinds for each in some)
        if seen.ticked or seen.doubtful:
            yield card.Ticks("Measured", told)
    if on is card.Medium.VERBOSE and (passed := passed_lines(report)):
        yield card.Ticks("Passed", tuple((None, each.area, each.text) for each in passed))


def _amount_examined(report: Report) -> str:
    """How much was examined, and how long that took."""
    counts = report.counts()
    skipped = {result.check for result in report.results if result.status is Status.SKIP}
    looked = {result.check for result in report.results if result.status is not Status.SKIP}
    applies = count(len(looked or skipped), "check")
    rest = [f"{counts[status]} {word}" for status, word in _OTHERS.items() if counts[status]]
    took = f"{report.run.seconds:.1f} s."
    if report.checks.none_applied:
        return took
    if rest or not looked:
        done = sum(counts.values()) - counts["skip"]
        split = ", ".join([f"{counts['pass']} passed", *rest])
        return f"{applies}, {count(done, 'result')}: {split}; {took}"
    return f"{applies} {'applies' if len(looked) == 1 else 'apply'} and all pass; {took}"


def _first(worst: Finding, report: Report) -> str:
    """What to mend first; a warning is only to be looked at."""
    who = culprit(worst, report.called)
    if who == NOBODY:
        return ""
    who = f"{worst.check} on {who}" if are_counted(worst.hosts) else who
    return f"{'Fix first' if report.rules.faults(worst) else 'Look at'}: {who}."


def _after(report: Report) -> Iterator[card.Step]:
    healthy, needed = len(report.healthy_hosts), report.rules.need_hosts
    found = [finding for finding in report.findings if finding.status in (Status.FAIL, Status.WARN)]
    lacks = [each.named for each in report.checks.unapplied if each.several]
    if needed is not None:
        remain = "host remains" if healthy == 1 else "hosts remain"
        enough = f"{healthy} healthy {remain}, {needed} {'is' if needed == 1 else 'are'} needed"
        yield card.Step("", f"{enough}: {'go' if report.exit_code == 0 else 'no go'}.")
    if report.run.stopped_by is not None and report.run.outstanding:
        yield card.Step("Next: ", f"{for_the_rest(report)}    (those that had not answered)")
    elif found:
        worst = fold_faults(found)[0].first
        yield card.Step("More: ", f"doctor explain {worst.check}", _first(worst, report))
        wanted = report.run.command == "preflight" and needed is None
        if wanted and healthy > 1 and report.exit_code == EXIT_FAULT and report.enough_hosts(healthy):
            fewer = f"--need-hosts {healthy} --healthy-hosts FILE"
            yield card.Step("", f"{healthy} other hosts are healthy; go on with: {fewer}")
            yield card.Step("", "and start the job on the names in FILE, not on all hosts")
    elif lacks:
        yield card.Step("Type: ", for_one_more_host(report, lacks))
    elif report.verdict is Verdict.INCONCLUSIVE:
        yield card.Step("Next: ", "see what was not examined, above")


def _run(report: Report) -> Iterator[card.Section]:
    plan, run = report.plan, report.run
    source = f" ({run.hosts_from})" if run.hosts_from else ""
    counts = ", ".join(f"{number} {word}" for word, number in report.counts().items() if number)
    job = (
        ("job", f"{count(plan.ranks, 'rank')}, backend {plan.carrier}"),
        ("head", f"{plan.head}, master port {plan.master_port}"),
        ("launch", plan.launch),
    )
    rows = (
        ("started", run.started),
        ("took", f"{run.seconds:.1f} s"),
        ("hosts", f"{fold(plan.names)}{source}, by {run.transport}"),
        *(() if plan.of_node else job),
        ("exam", run.exam if run.exam_version is None else f"{run.exam}/{run.exam_version}"),
        ("checks", f"{len(report.checks.scopes)}{counts and f'; results: {counts}'}"),
        ("verdict", f"{report.verdict.value}, exit code {report.exit_code}"),
    )
    same = card.Row("The same again", (repeat(report),), card.RowForm.TYPED)
    replayed = card.Row("This page from the recording of the run", (OF_REPLAY, REPLAY), card.RowForm.TYPED)
    yield card.Section(
        "This run", parts=(card.Pairs("", tuple(row for row in rows if row[1])), same, replayed)
    )


def seen_inside(report: Report) -> str:
    """Which hosts were seen from inside a container, for the first lines of a report, if a finding was."""
    names = [name for name in report.plan.names if name in report.seen.inside]
    if not names or not any(View.CONTAINER in (each.view, each.seen_from) for each in report.findings):
        return ""
    whom = "" if len(names) == len(report.plan.names) else f"{fold(names)}: "
    return f"{whom}seen from inside the container"


def _looked_again(report: Report) -> Iterator[tuple[str, str]]:
    """What has become of each finding of an earlier run."""
    for each in report.again:
        said = f"{each.before.headline} ({each.before.check})"
        if each.now is RecheckState.STILL and len(each.still) < len(each.before.hosts):
            said += f"; on {fold(each.still)} only"
        if each.open:
            said += f"; not decided on {fold(each.open)}"
        yield each.now.value, said + (f": {each.why}" if each.why else "")


def unexamined(report: Report) -> card.Pairs:
    """What could not be examined, and why: equal reasons share a row."""
    return card.Pairs("Not examined", tuple(_unexamined(report)))


def _unexamined(report: Report) -> Iterator[tuple[str, str]]:
    if report.run.outstanding:
        yield fold(report.run.outstanding), "had not answered when the run ended"
    if unheard := report.unheard:
        yield f"everything on {fold(unheard)}", "out of reach, see above"
    for each in report.checks.unapplied:
        yield each.named, each.why
    undecided = (each for each in report.findings if each.status is Status.UNKNOWN)
    found = grouped(((each.reason, each.hosts), each.check) for each in undecided)
    for (reason, hosts), checks in found.items():
        where = "" if len(hosts) in (0, len(report.hosts)) else f" on {fold(hosts)}"
        yield _check_names(checks, report) + where, reason
    first = next(iter(report.training.runs), None)
    if first and (lacking := not_made(first)):
        yield (f"the collectives {', '.join(lacking)}", f"{first.plan.backend} does not have them")
    if first and first.plan.turns and (apart := pairs_apart(len(first.plan.hosts))):
        yield f"links between {apart} pairs of hosts", "of so many hosts, each meets only some"
    if rates := unjudged_rates(report):
        yield RATES, f"not judged: {rates}"
    why = {host.name: host.reason for host in report.hosts if host.reason}
    untrained = (name for name in why if why[name] == report.training.untrained.get(name))
    for reason, names in grouped((why[name], name) for name in untrained).items():
        yield f"training on {fold(names)}", reason
    for note in report.notes:
        yield "note", note


def _check_names(checks: Iterable[str], report: Report) -> str:
    """The checks; those of the smoke run are summed up as `smoke-*` if most of them could not be decided."""
    names = dict.fromkeys(checks)
    skipped = {result.check for result in report.results if result.status is Status.SKIP}
    smoke = [id for id in report.checks.scopes if id.startswith("smoke-") and id not in skipped]
    decided = [id for id in smoke if id not in names]
    if len(decided) >= len(smoke) / 2:
        return ", ".join(names)
    rest = [name for name in names if name not in smoke]
    return ", ".join([*rest, "smoke-*" + (f" except {' and '.join(decided)}" if decided else "")])
