"""The page of an examination, and what it did not examine."""

from collections.abc import Iterable, Iterator

from doctor.judge.again import RecheckState
from doctor.judge.verdict import Report
from doctor.model import HostStatus, Status, View
from doctor.report.page.card import Page, Pairs
from doctor.report.page.fault import fault_cards
from doctor.report.page.headline import last_line, verdict_word, whom
from doctor.report.page.measurements import RATES, unjudged_rates
from doctor.rules.smoke import not_made
from doctor.text.nodeset import fold


def page_of(report: Report) -> Page:
    name, kind = verdict_word(report)
    left, inside = unexamined(report), seen_inside(report)
    return Page(
        report.run.command,
        report.run.started,
        name,
        kind,
        whom(report),
        last_line(report),
        ((_hosts(report), ""), *(((inside, ""),) if inside else ())),
        fault_cards(report),
        parts=(left,) if left.pairs else (),
    )


def _hosts(report: Report) -> str:
    if not report.hosts:
        return "no host was asked"
    counts = ((status, sum(host.status is status for host in report.hosts)) for status in HostStatus)
    each = ", ".join(f"{count} {status.value}" for status, count in counts if count)
    return f"{len(report.hosts)} host{'s' if len(report.hosts) > 1 else ''}: {each}"


def seen_inside(report: Report) -> str:
    """Which hosts were seen from inside a container, for the first lines of a report, if a finding was."""
    names = [name for name in report.plan.names if name in report.seen.inside]
    if not names or not any(View.CONTAINER in (each.view, each.seen_from) for each in report.findings):
        return ""
    whom = "" if len(names) == len(report.plan.names) else f"{fold(names)}: "
    return f"{whom}seen from inside the container"


def looked_again(report: Report) -> Pairs:
    """What has become of each finding of an earlier run."""
    return Pairs("Looked at again", tuple(_looked_again(report)), aligned=True)


def _looked_again(report: Report) -> Iterator[tuple[str, str]]:
    for each in report.again:
        said = f"{each.before.headline} ({each.before.check})"
        if each.now is RecheckState.STILL and len(each.still) < len(each.before.hosts):
            said += f"; on {fold(each.still)} only"
        if each.open:
            said += f"; not decided on {fold(each.open)}"
        yield each.now.value, said + (f": {each.why}" if each.why else "")


def unexamined(report: Report) -> Pairs:
    """What could not be examined, and why: equal reasons share a row."""
    return Pairs("Not examined", tuple(_unexamined(report)))


def _unexamined(report: Report) -> Iterator[tuple[str, str]]:
    if report.run.outstanding:
        yield fold(report.run.outstanding), "had not answered when the run ended"
    if unheard := report.unheard:
        yield f"everything on {fold(unheard)}", "out of reach, see above"
    for each in report.checks.unapplied:
        yield each.named, each.why
    found: dict[tuple[str, tuple[str, ...]], list[str]] = {}
    for finding in report.findings:
        if finding.status is Status.UNKNOWN:
            found.setdefault((finding.reason, finding.hosts), []).append(finding.check)
    for (reason, hosts), checks in found.items():
        where = "" if len(hosts) in (0, len(report.hosts)) else f" on {fold(hosts)}"
        yield _check_names(checks, report) + where, reason
    first = next(iter(report.training.runs), None)
    if first and (lacking := not_made(first)):
        yield (
            f"the collectives {', '.join(lacking)}",
            f"{first.plan.backend} does not have them",
        )
    if rates := unjudged_rates(report):
        yield RATES, f"not judged: {rates}"
    untrained: dict[str, list[str]] = {}
    for host in report.hosts:
        if host.reason and host.reason == report.training.untrained.get(host.name):
            untrained.setdefault(host.reason, []).append(host.name)
    for reason, names in untrained.items():
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
