"""The section of the smoke runs: the outcome, loss and phases of each, the step times of ranks, and links."""

from doctor.facts.smoke import JudgedRun
from doctor.judge.verdict import Report
from doctor.report.html.heatmap import links_part
from doctor.report.html.losses import losses_figure
from doctor.report.html.markup import NOTHING, Html, folded, join, pill, section, table, tag
from doctor.report.page.smoke import RankPace, RunNumbers, rank_paces, worst_paces
from doctor.report.page.smoke_losses import loss_drawings
from doctor.text.nodeset import fold
from doctor.text.speech import in_sentences

MOST_RANKS = 16
"""If there are more ranks, those that compute longest are shown."""
LONGEST = 200
"""The most characters of a version that a rank reported."""
_WORD = {"pass": ("passed", "good"), "fail": ("failed", "fail"), "skipped": ("not reached", "open")}


def training_section(report: Report) -> Html:
    training = report.training
    if not training.runs:
        why = tag("p", pill("not made", "open"), " ", training.not_made) if training.not_made else NOTHING
        return section("training", "Training", why)
    parts = [
        _run(run, report, number, training.runs[number - 2] if number > 1 else None)
        for number, run in enumerate(training.runs, 1)
    ]
    return section("training", "Training", *parts)


def _run(run: JudgedRun, report: Report, number: int, before: JudgedRun | None) -> Html:
    hosts = [host.name for host in report.hosts]
    seen = RunNumbers(run, report.training.net_seconds if before is None else None)
    word, kind = _WORD[seen.outcome]
    word = "interrupted" if word == "not reached" else word
    gone = [host for host in before.plan.hosts if host not in run.plan.hosts] if before else []
    title = f"Repeated without {fold(gone)}" if before else "Short training"
    links = links_part(seen.links, hosts)
    return join(
        (
            tag("h3", f"{title} ", pill(word, kind)),
            tag("p", _what(seen)),
            tag("p", f"Faults on purpose: {seen.injected}.", class_="warn") if run.plan.injected else NOTHING,
            *map(losses_figure, drawings := loss_drawings(run, f"loss-{number}")),
            _undrawn(run, len(drawings)),
            _phases(seen),
            _steps(run),
            join((tag("h3", "Links"), links)) if links else NOTHING,
            _versions(seen),
        )
    )


def _undrawn(run: JudgedRun, drawn: int) -> Html:
    left = len(run.plan.cells) - drawn
    return tag("p", f"{left} more cells learned more than these.") if left > 0 and drawn else NOTHING


def _what(seen: RunNumbers) -> str:
    plan = seen.run.plan
    said = f"{seen.ranks} on {fold(plan.hosts)}, {seen.trained_with}, {seen.layout}"
    seconds, tokens = seen.step_seconds, seen.tokens
    said += "" if seconds is None else f"; {1e3 * seconds:.3g} ms a step"
    said += "" if tokens is None else f", {tokens:,.0f} tokens a second"
    ended = "" if seen.run.result.end.kind == "done" else f"It ended in the {seen.last_phase} phase."
    left = (f"{host} was left out: {why}." for host, why in seen.left_out.items())
    compared = seen.comparison and f"{seen.comparison}."
    return in_sentences(f"{said}.", ended, *left, compared)


def _phases(seen: RunNumbers) -> Html:
    most = max((line.seconds for line in seen.phases), default=0.0) or 1.0
    rows = []
    for line in seen.phases:
        word, kind = _WORD[line.status]
        rows.append(
            tag(
                "tr",
                tag("th", line.name, scope="row"),
                tag("td", word, class_=kind),
                tag("td", f"{line.seconds:.1f} s" if line.seconds else "", class_="number"),
                tag("td", _bar(line.seconds / most, line.status == "fail") if line.seconds else NOTHING),
            )
        )
    return table("Phases, each of its slowest rank", ("phase", "result", "took", ""), rows)


def _bar(share: float, fail: bool = False) -> Html:
    """A bar with the number beside it."""
    return tag("span", class_="bar fail" if fail else "bar", style=f"--share:{share:.3f}", aria_hidden="true")


def _steps(run: JudgedRun) -> Html:
    """The table of step times: a step consists of computing and of waiting for the slowest rank."""
    paces = rank_paces(run)
    shown = worst_paces(paces, MOST_RANKS)
    if not paces:
        return NOTHING
    most = max(pace.step - pace.wait for pace in paces)
    rows = [_rank(run, pace, most) for pace in shown]
    which = f": {len(shown)} of {len(paces)}, the latest" if len(shown) < len(paces) else ""
    heads = ("rank", "host", "a step", "waits", "computes", "", "later than others", "loss", "named by")
    return table(f"Step times, the median of each rank{which}", heads, rows)


def _rank(run: JudgedRun, pace: RankPace, most: float) -> Html:
    device = run.plan.seat(pace.rank).device
    computes = pace.step - pace.wait
    late = f"{1e3 * pace.late:+.2f} ms"
    return tag(
        "tr",
        tag("th", str(pace.rank), scope="row"),
        tag("td", pace.host if device is None else f"{pace.host} device {device}"),
        *(tag("td", f"{1e3 * each:.2f} ms", class_="number") for each in (pace.step, pace.wait, computes)),
        tag("td", _bar(computes / most if most else 0.0, bool(pace.check))),
        tag("td", late, class_="number"),
        tag("td", "" if pace.loss is None else f"{pace.loss:.2f}", class_="number"),
        tag("td", pace.check or "–", class_="fail" if pace.check else "soft"),
    )


def _versions(seen: RunNumbers) -> Html:
    found = seen.versions
    if not found:
        return NOTHING
    pairs = (join((tag("dt", name[:LONGEST]), tag("dd", value[:LONGEST]))) for name, value in found.items())
    return folded("Versions that the ranks named", tag("dl", *pairs))
