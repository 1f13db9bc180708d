"""An examination as Markdown: the verdict and the culprits, hosts, findings, tickets."""

from __future__ import annotations

from doctor import __version__
from doctor.judge.verdict import Report
from doctor.report.faults import looked_again, page_of, unexamined
from doctor.report.host_rows import OK, host_rows
from doctor.report.markdown_page import MOST, card_line, card_text, fit, pair_line
from doctor.report.markdown_text import cell, code, inline, row, table
from doctor.report.measurements import measured
from doctor.report.names import named
from doctor.report.run_times import started
from doctor.report.ticket import tickets
from doctor.text.nodeset import fold
from doctor.text.speech import sign, t, t_list


def check_markdown(report: Report) -> bytes:
    page = page_of(report)
    text = f"## cluster-doctor: {inline(page.says)}\n\n{_about(report)}\n\n"
    if page.cards:
        lines = (f"- {card_line(card)}\n" for card in page.cards)
        text += fit(lines, _room(text, 0.2), "finding") + "\n"
    text += f"### {t('Hosts')}\n\n" + _hosts(report, _room(text, 0.2))
    if page.cards:
        cards = (card_text(card, "####") for card in page.cards)
        text += f"\n### {t('Findings')}\n" + fit(cards, _room(text, 0.6), "finding")
    if report.again:
        pairs = map(pair_line, looked_again(report).pairs)
        text += f"\n### {t('Looked at again')}\n\n" + fit(pairs, _room(text, 0.5), "finding")
    if well := _measurements(report):
        text += f"\n### {t('Measured')}\n\n{well}"
    if rows := unexamined(report).pairs:
        text += f"\n### {t('Not examined')}\n\n" + fit(map(pair_line, rows), _room(text, 0.3), "row")
    if made := dict(tickets(report)):
        text += f"\n### {t('Tickets')}\n\n" + fit(made.values(), _room(text, 1), "ticket")
    return text.encode()


def _room(text: str, share: float) -> int:
    return int((MOST - len(text)) * share)


def _about(report: Report) -> str:
    hosts = f"{code(fold(report.plan.names)[:400])}, " if report.plan.names else ""
    run = report.run
    return t(
        f"Hosts {hosts}{report.plan.ranks} ranks, backend {inline(report.plan.carrier.value)}."
        f" Exit code {report.exit_code}. {inline(run.command)} began {inline(started(report))}"
        f" and took {run.seconds:.1f} s (cluster-doctor {__version__})."
    )


def _hosts(report: Report, room: int) -> str:
    """The table of hosts by area: equal hosts share a row, unhealthy ones come first."""
    alike = sorted(host_rows(report), key=lambda each: each.verdict == OK)
    areas = tuple(alike[0].cells) if alike else ()
    rows = (
        row(
            (
                cell(named(each.hosts, report.called)),
                *(cell(each.cells[area]) for area in areas),
                cell(each.verdict),
            )
        )
        for each in alike
    )
    return table(tuple(map(t, ("Host", *areas, "Verdict"))), ()) + fit(rows, room, "row")


def _measurements(report: Report) -> str:
    """What was measured and found healthy, and what was not tried."""
    seen = measured(report)
    lines = [
        (f"{mark} ", line) for mark, some in (("\u2713", seen.ticked), ("?", seen.doubtful)) for line in some
    ]
    lines += [(f"{t(line.left)}{sign(': ')}", line) for line in seen.left]
    return "".join(
        f"- {mark}**{t(line.area)}**{sign(': ')}{inline(t_list(line.text))}\n" for mark, line in lines
    )
