"""The difference of two runs as a page, and as JSON."""

from collections.abc import Iterator

from msgspec.structs import replace

from doctor.diff.compare import BAD, Change, Difference, severity
from doctor.diff.envelope import ChangeEntry, ChangeKind, DiffPart, DiffReport, RunEntry
from doctor.diff.saved import Saved
from doctor.judge.fact_changes import TITLES
from doctor.model import Status
from doctor.report.files.envelope import EnvelopeRun, FindingEntry, entry_of, outcome_of
from doctor.report.page.card import Card, CardKind, Page, Row, RowForm, Table
from doctor.text.nodeset import fold

WORSE = "Worse: "
WORDS = {0: ("Not worse", CardKind.GOOD), 1: ("Worse", CardKind.FAIL), 3: ("Undecided", CardKind.OPEN)}
CARDS = {
    ChangeKind.NEW: ("NEW", CardKind.FAIL),
    ChangeKind.ALONE: ("UNKNOWN", CardKind.OPEN),
    ChangeKind.OPEN: ("UNKNOWN", CardKind.OPEN),
    ChangeKind.STILL: ("STILL", CardKind.WARN),
    ChangeKind.GONE: ("GONE", CardKind.GOOD),
}


def page_of(found: Difference) -> Page:
    word, kind = WORDS[found.exit_code]
    return Page(
        "diff",
        found.after.started,
        word,
        kind,
        headline(found).removeprefix(WORSE),
        f"{headline(found)}.",
        tuple(_about(found)),
        tuple(map(_card, found.changes)),
        "Findings",
        parts=tuple(_tables(found)),
        notes=tuple(_notes(found)),
    )


def headline(found: Difference) -> str:
    """What got worse, in a few words; else that nothing did, or why that cannot be said."""
    if not found.both:
        return "The two runs have no host in common"
    new = found.of(ChangeKind.NEW)
    worse = [each for each in found.facts if each.worse]
    if new:
        more = f"; {len(new) - 1} more" if len(new) > 1 else ""
        return f"{WORSE}{_who(new[0])}: {new[0].finding.summary.rstrip('.')}{more}"
    if worse:
        first = worse[0]
        title = TITLES.get(first.key, first.key)
        return f"{WORSE}{title} of {fold(first.hosts)}: {first.before} -> {first.after}"
    if open_ := found.of(ChangeKind.OPEN, ChangeKind.ALONE):
        return (
            f"Whether it got worse is not known: {len(open_)} findings were looked at in one of the runs only"
        )
    gone, facts = len(found.of(ChangeKind.GONE)), len(found.facts)
    return f"Nothing got worse; {gone} findings are gone, {facts} facts changed"


def _about(found: Difference) -> Iterator[tuple[str, str]]:
    yield fold(found.both) or "no host", f" {len(found.both)} hosts are in both runs"
    for name, run in (("before", found.before), ("after", found.after)):
        yield "", f"{name}: {run.path}, {run.started}"


def _who(change: Change) -> str:
    subject = change.finding.subject
    where = fold(change.hosts) if change.hosts else "the run"
    return f"{where} {subject}" if subject and subject not in where and change.hosts else where


def _card(change: Change) -> Card:
    word, kind = CARDS[change.kind]
    if change.kind is ChangeKind.NEW and change.finding.status is Status.WARN:
        kind = CardKind.WARN
    rows = [Row(change.kind.value, (change.why,))] if change.why else []
    if change.kind in (ChangeKind.NEW, ChangeKind.ALONE):
        seen = tuple(each.text for each in change.finding.evidence[:1])
        rows += [Row("seen", seen, RowForm.QUOTED, few=2)] if seen else []
    return Card(
        word, kind, _who(change), change.finding.summary, tag=change.finding.check or "", rows=tuple(rows)
    )


def _tables(found: Difference) -> Iterator[Table]:
    rows = tuple(
        (f"{'! ' * each.worse}{TITLES.get(each.key, each.key)}", each.before, each.after, fold(each.hosts))
        for each in sorted(found.facts, key=lambda each: not each.worse)
    )
    if rows:
        yield Table("Facts that changed", ("FACT", "BEFORE", "AFTER", "HOSTS"), rows)


def _notes(found: Difference) -> Iterator[str]:
    if found.added:
        yield f"Only in the later run: {fold(found.added)}."
    if found.removed:
        yield f"Only in the earlier run: {fold(found.removed)}."


def diff_report(found: Difference) -> DiffReport:
    findings = tuple(_finding(f"f{n}", each) for n, each in enumerate(found.of(ChangeKind.NEW), 1))
    return DiffReport(
        run=EnvelopeRun(command="diff", started=found.after.started),
        **outcome_of(found.exit_code, headline(found), found.both, {}, findings),
        diff=entry_of(
            DiffPart,
            found,
            before=_run(found.before),
            after=_run(found.after),
            changes=tuple(map(_change, found.changes)),
        ),
    )


def _finding(id: str, change: Change) -> FindingEntry:
    """The finding of the later run, on the hosts where it is new; no command of a file is typed."""
    hosts = change.hosts
    host = hosts[0] if len(hosts) == 1 else None
    own = change.finding
    return replace(
        own,
        id=id,
        hosts=hosts,
        nodeset=fold(hosts),
        host=host,
        where=tuple(each for each in own.where if each.host in (*hosts, None)),
        status=BAD[severity(own)],
        waiver=None if own.status is Status.WAIVED else own.waiver,
        remedy=None,
        verify=None,
        because=None,
    )


def _change(change: Change) -> ChangeEntry:
    own, why = change.finding, change.why or None
    return entry_of(ChangeEntry, own, state=change.kind, hosts=change.hosts, why=why)


def _run(run: Saved) -> RunEntry:
    return RunEntry(file=str(run.path), started=run.started, hosts=tuple(each.name for each in run.hosts))
