"""The smoke runs in a terminal: one paragraph, which has three lines if nothing is wrong."""

from collections.abc import Iterable, Iterator, Sequence

from rich.console import Console
from rich.text import Text

from doctor.facts.smoke import JudgedRun
from doctor.judge.verdict import Report
from doctor.model import Status
from doctor.report.page import smoke
from doctor.report.page.smoke import RunNumbers
from doctor.report.page.smoke_losses import loss_drawing
from doctor.report.terminal.losses import print_losses
from doctor.report.terminal.rank_table import print_pairs, print_ranks
from doctor.rules.smoke import together
from doctor.text.nodeset import fold
from doctor.text.printable import clean_line
from doctor.text.speech import sign, t
from doctor.text.wrap import padded

TITLE = "Smoke"
INDENT = len(TITLE) + 2
BLOCKS = "▁▂▃▄▅▆▇█"
CURVE = 8
"""The characters of the loss curve."""
_CLOSING = ("，", "；", "：", "（")
"""A blank after these is too much."""
LONGEST = 100
"""The most characters of a version that a host reported."""
Pieces = list[Text]
"""Pieces that are not broken at the end of a line, each with its blanks and commas."""


def print_smoke(report: Report, console: Console, *, verbose: bool = False) -> None:
    """Prints the paragraph; nothing if no smoke run was asked for."""
    if not report.training.runs:
        if report.training.not_made:
            console.print()
            _print([_words(f"not made: {clean_line(report.training.not_made)}")], console)
        return
    first, *more = report.training.runs
    seen = RunNumbers(first, report.training.net_seconds)
    console.print()
    _print([*_lines(seen, report, verbose), *_repeats(first, more)], console)
    if (verbose or seen.loss_charged) and (drawing := loss_drawing(first)):
        print_losses(drawing, console, INDENT)
    if verbose or seen.slow or seen.loss_charged:
        print_ranks(first, console, INDENT)
    if verbose or seen.slow_hosts:
        print_pairs(seen, console, INDENT)


def _lines(seen: RunNumbers, report: Report, verbose: bool) -> Iterator[Pieces]:
    yield [*_words(f"{_who(seen)}:"), *_course(seen)]
    yield _phases(seen)
    speed = [] if seen.tokens is None else [_words(f"{smoke.number_text(seen.tokens)} tokens a second")]
    measured = [*speed, *_links(seen), *_judged(report)]
    if measured:
        yield _join(measured, "; ")
    if verbose:
        told = [f"{name} {version}"[:LONGEST] for name, version in seen.versions.items()]
        peak = max((host.peak_memory for host in seen.run.result.hosts), default=0)
        told += [f"{peak / 1e6:.0f} MB a rank"] if peak else []
        yield _join([_words(clean_line(each)) for each in told], ", ")
    if seen.comparison:
        yield _words(seen.comparison)
    if seen.injected:
        yield [*_words("injected on purpose:"), *_words(_injected(seen), "bold yellow")]
    reasons: dict[str, list[str]] = {}
    for host, reason in seen.left_out.items():
        reasons.setdefault(reason, []).append(host)
    for reason, hosts in reasons.items():
        yield _words(clean_line(f"left out: {fold(hosts)} ({reason})"))


def _who(seen: RunNumbers) -> str:
    plan = seen.run.plan
    counts = {len(plan.on(host)) for host in plan.hosts}
    each = f" × {counts.pop()}" if len(counts) == 1 else ""
    hosts = f"{len(plan.hosts)} hosts{each}" if len(plan.hosts) > 1 else "one host"
    return clean_line(f"{seen.ranks} ({hosts}), {seen.trained_with[:LONGEST]}, {seen.layout}")


def _course(seen: RunNumbers) -> Pieces:
    """The outcome of the run, and what it learned."""
    run, learned = seen.run, seen.loss
    steps = learned.steps if learned else 0
    pieces: Pieces = []
    if seen.outcome == "skipped":
        pieces += _words(f"interrupted in the {seen.last_phase} phase,", "bold cyan")
    elif seen.outcome == "fail":
        pieces += _words("failed,", "bold red")
        if run.result.end.kind != "done":
            pieces += _words(f"ended in the {seen.last_phase} phase,")
    done = f"{steps} of {run.plan.steps}" if steps < run.plan.steps else str(steps)
    pieces += _words(f"{done} step{'' if done == '1' else 's'}")
    if learned is None:
        return pieces
    good = seen.loss_good
    values = [value for value in learned.curve if value is not None]
    if values:
        pieces[-1] += Text(sign(","))
        pieces += [
            *_words(f"loss {_loss(values[0])} → {_loss(values[-1])}"),
            Text(curve(values), style="red" if good is False else "green" if good else ""),
        ]
    if learned.drop is not None and learned.limit is not None:
        pieces += _words(t("(good:" if good else "(not good:"), "green" if good else "bold red")
        said = f"learned {100 * learned.drop:.0f} %, needed {100 * learned.limit:.0f} %"
        pieces += _words(t(said) + sign(")"))
    if seen.step_seconds is not None:
        pieces[-1] += Text(sign(","))
        pieces += _words(f"{smoke.number_text(1e3 * seen.step_seconds)} ms a step")
    return pieces


def curve(values: Sequence[float]) -> str:
    """The values as a curve of a few characters, scaled from the least to the largest."""
    size = min(CURVE, len(values))
    parts = [values[len(values) * n // size : len(values) * (n + 1) // size] for n in range(size)]
    means = [sum(part) / len(part) for part in parts]
    low, high = min(means), max(means)
    span = (high - low) or 1.0
    return "".join(BLOCKS[round((mean - low) / span * (len(BLOCKS) - 1))] for mean in means)


def _phases(seen: RunNumbers) -> Pieces:
    pieces: Pieces = []
    rows = seen.phases
    shown = [row for row in rows if row.status != "skipped" or row.seconds]
    for row in shown:
        text = Text(f"{t(row.name)} {row.seconds:.1f}")
        if row is shown[-1]:
            text += Text(" s")
        if row.status == "fail":
            text += Text(f" {t('failed')}", style="bold red")
        pieces.append(text)
    spaced = _join([[piece] for piece in pieces], "  ")
    missing = [row.name for row in rows if row not in shown]
    if missing:
        spaced += _words(f"{sign('(')}{t('not reached: ' + ', '.join(missing))}{sign(')')}", "dim")
    return spaced


def _judged(report: Report) -> list[Pieces]:
    """Whether these numbers are good: the results of the checks that compare ranks and links."""
    said = []
    blamed = {each.check for each in report.results if each.status in (Status.FAIL, Status.WARN)}
    # Links are compared with each other, and not only the two directions of each.
    compared = any(together(run.plan) > 2 for run in report.training.runs)
    for check, good, bad in (
        ("smoke-straggler", "no rank is slow", "slow ranks"),
        ("smoke-slow-link", "no link is slow" if compared else "", "slow links"),
    ):
        statuses = {result.status for result in report.results if result.check == check}
        if check in blamed or (check == "smoke-straggler" and "smoke-contention" in blamed):
            said.append(_words(bad, "bold red"))
        elif statuses == {Status.PASS} and good:
            said.append(_words(good, "green"))
    return said


def _links(seen: RunNumbers) -> list[Pieces]:
    found = seen.links
    if not found:
        return []
    slowest, fastest = smoke.rate_text(found[0].rate), smoke.rate_text(found[-1].rate)
    pair = clean_line(" - ".join(found[0].hosts))
    trip = f"{1e3 * max(link.round_trip for link in found):.2f} ms"
    worst = max(link.resent for link in found)
    again = [_words(f"up to {worst:.1%} of TCP segments sent again")] if worst > smoke.MANY_RESENT else []
    if len(found) == 1:
        return [_words(f"link {pair} {slowest} each way"), _words(f"round trip {trip}"), *again]
    span = slowest if slowest == fastest else f"{slowest} ({pair}) to {fastest}"
    return [_words(f"links {span} each way"), _words(f"round trips up to {trip}"), *again]


def _loss(value: float) -> str:
    return f"{value:.2f}" if abs(value) < 1e4 else f"{value:.1e}"


def _injected(seen: RunNumbers) -> str:
    latency = seen.run.result.end.latency
    found = "" if latency is None else f" (the run was ended {latency:.2f} s after it took effect)"
    return clean_line(seen.injected) + t(found)


def _repeats(before: JudgedRun, runs: Sequence[JudgedRun]) -> Iterator[Pieces]:
    for run in runs:
        gone = [host for host in before.plan.hosts if host not in run.plan.hosts]
        pieces = _words(clean_line(f"repeated without {fold(gone)}:"))
        checks = dict.fromkeys(charge.check for charge in run.charges if charge.is_fault)
        status = RunNumbers(run).outcome
        style = {"pass": "bold green", "fail": "bold red", "skipped": "bold cyan"}[status]
        word = {"pass": "passed", "fail": "failed", "skipped": "interrupted"}[status]
        pieces += _words(word, style)
        if checks:
            pieces += _words(f"({', '.join(checks)})")
        yield pieces
        before = run


def _words(text: str, style: str = "") -> Pieces:
    return [Text(word, style=style) for word in t(text).split(" ") if word]


def _join(groups: Sequence[Pieces], between: str) -> Pieces:
    """The groups one after the other; each ends with the separator, without its trailing blank."""
    joined: Pieces = []
    groups = [group for group in groups if group]  # a host may call a version nothing but blanks
    for number, group in enumerate(groups):
        last = number == len(groups) - 1
        *rest, end = group
        joined += [
            *rest,
            end if last else end + Text((sign(between) if between.strip() else between).removesuffix(" ")),
        ]
    return joined


def _print(lines: Iterable[Pieces], console: Console) -> None:
    """Prints the lines under the title, wrapped between their pieces."""
    head = Text.assemble((padded(t(TITLE), len(TITLE)) + "  ", "bold"))
    for pieces in filter(None, lines):
        line = Text()
        for piece in pieces:
            if line and INDENT + line.cell_len + 1 + piece.cell_len > console.width:
                console.print(head + _bare(line), soft_wrap=True)
                head, line = Text(" " * INDENT), Text()
            blank = "" if line.plain.endswith(_CLOSING) else " "
            line = line + Text(blank) + piece if line else piece
        console.print(head + _bare(line), soft_wrap=True)
        head = Text(" " * INDENT)


def _bare(line: Text) -> Text:
    line = line.copy()
    line.rstrip()
    return line
