"""The certificate of an acceptance test: which machines were measured, by which floors, and the outcome."""

from collections.abc import Iterator
from statistics import median

from doctor.judge.hardware import Hardware
from doctor.judge.verdict import Report
from doctor.model import Status
from doctor.report.page import card
from doctor.report.page.facts import fact_tables
from doctor.report.page.fault import fault_cards
from doctor.report.page.headline import last_line, verdict_word, whom
from doctor.report.page.smoke import rate_text
from doctor.report.page.training import alone_table, collectives_table
from doctor.rules.accept import collective_rates, named, rates_of_pairs
from doctor.rules.alone import host_rates, of_floor
from doctor.smoke.judge.link_charges import bit_rate

STANDS = {
    Status.FAIL: card.Words("below", card.CardKind.FAIL),
    Status.UNKNOWN: card.Words("not decided", card.CardKind.OPEN),
    Status.PASS: card.Words("met", card.CardKind.GOOD),
}


def certificate_page(report: Report, recording: str) -> card.Page:
    """`recording` is the SHA-256 of the recording's file."""
    word, kind = verdict_word(report)
    run, training = report.run, report.training
    verdict = f"{report.verdict.value}, exit code {report.exit_code}"
    rows = ("measured", run.started), ("verdict", verdict), ("SHA-256 of the recording", recording)
    parts: list[card.Part] = [
        card.Pairs("Certificate", rows),
        card.Table("Machines", ("host", "serial number", "model", "devices"), tuple(_machines(report))),
        card.Table("Floors", ("floor", "measured", ""), tuple(_floors(report))),
        *(table for last in training.runs[-1:] for table in collectives_table(last, training.floor)),
        *(table for first in training.runs[:1] for table in alone_table(first)),
        card.Section("Versions", parts=tuple(fact_tables(report, whole=True))),
    ]
    cards, told = fault_cards(report, apart=False), (whom(report), last_line(report))
    return card.Page(run.command, run.started, word, kind, *told, cards=cards, parts=tuple(parts))


def _machines(report: Report) -> Iterator[tuple[card.Cell, ...]]:
    for host in report.hosts:
        known = report.seen.hardware.get(host.name, Hardware())
        serials = ", ".join(part.serial for part in known.parts.values() if part.serial)
        devices = f"{host.product} {serials}".strip()
        yield host.name, known.serial or "not read (--sudo)", known.model or "-", devices


def _floors(report: Report) -> Iterator[tuple[card.Cell, ...]]:
    """Each floor, what was measured, and how that stands by the findings."""
    floor, runs = report.training.floor, report.training.runs
    pairs, text = rates_of_pairs(runs), floor.text if floor else ""
    least = bit_rate(min(map(median, pairs.turns.values()))) if pairs else ""
    yield (
        text or "pair",
        least or "-",
        _stands(report, "accept-slow-link", text, least) if text else "no floor",
    )
    rates = next(filter(None, map(collective_rates, reversed(runs))), ())
    for each in floor.collectives if floor else ():
        own = [one.bus_bytes_per_second for one in named(rates, each)]
        least = rate_text(min(own)) if own else ""
        yield each.text, least or "-", _stands(report, "accept-slow-collective", each.text, least)
    alone = next(filter(None, map(host_rates, runs)), ())
    for each in floor.hosts if floor else ():
        slowest = min(of_floor(alone, each), key=lambda one: one.rate, default=None)
        least = slowest.text if slowest else ""
        yield each.text, least or "-", _stands(report, "accept-slow-host", each.text, least)


def _stands(report: Report, check: str, floor: str, measured: str) -> card.Words:
    """An open question about pairs concerns their floor, one about collectives the floors that it names."""
    found = {Status.PASS if check in report.checks.scopes and measured else Status.UNKNOWN}
    for each in (each for each in report.findings if each.check == check):
        asked = check == "accept-slow-link" or floor in each.summary
        if each.expected == floor or (each.status is Status.UNKNOWN and asked):
            found.add(each.status)
    return next(words for status, words in STANDS.items() if status in found)
