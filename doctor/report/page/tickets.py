"""Tickets for those who repair machines: one for each host that a fault names, with what finds the part."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, timedelta

from doctor import __version__
from doctor.expect import moment
from doctor.judge.hardware import Hardware, HardwarePart
from doctor.judge.verdict import HostReport, Report, RunInfo
from doctor.model import Finding
from doctor.report.page.card import Card, Row, RowForm, Ticket
from doctor.report.page.fault import evidence, fault_cards
from doctor.text.grouped import grouped

NOT_READ = "not known"
HIDDEN = "root alone may read it: sudo cat /sys/class/dmi/id/product_serial"


def tickets(report: Report) -> Iterator[Ticket]:
    cards = {card.ids[0]: card for card in fault_cards(report, apart=True) if card.ids}
    against = grouped((name, finding) for finding in report.faults for name in finding.hosts)
    for host in report.hosts:
        if mine := against.get(host.name):
            own = tuple(_of_host(cards[finding.id], finding, host.name, report) for finding in mine)
            yield Ticket("Ticket:", host.name, tuple(_rows(report, host, mine)), own)


def _of_host(card: Card, finding: Finding, host: str, report: Report) -> Card:
    """The card without other hosts, and with what was seen on this one."""
    _, seen = evidence(finding, report, host)
    lines = tuple(line for each in seen for line in f"{each.source}: {each.text}".split("\n"))
    kept = (row for row in card.rows if row.form not in (RowForm.QUOTED, RowForm.HOSTS))
    return replace(card, who="", rows=(*kept, Row("seen", lines, RowForm.QUOTED)), ids=(), follows=False)


def _rows(report: Report, host: HostReport, against: list[Finding]) -> Iterator[tuple[str, str]]:
    known = report.seen.hardware.get(host.name)
    if known is None:
        yield "Machine", "not read: the host did not answer"
    else:
        yield "Machine", known.model or NOT_READ
        yield "Serial number", known.serial or (HIDDEN if known.hidden else NOT_READ)
    yield "Address", host.address
    if host.node:
        yield "Node", host.node
    if known:
        yield "Network interface", known.interface or NOT_READ
        yield from ((part.name, _part(part)) for part in _parts(host.name, known, against))
    yield "Examined", f"{_times(report.run)} by cluster-doctor {__version__}"


def _parts(host: str, known: Hardware, against: list[Finding]) -> Iterator[HardwarePart]:
    """The devices that the faults name."""
    places = (place for finding in against for place in finding.where if place.host in (host, None))
    numbers = sorted({place.device for place in places if place.device is not None})
    yield from (known.parts.get(number, HardwarePart(f"Device {number}")) for number in numbers)


def _part(part: HardwarePart) -> str:
    named = (
        ("", part.model),
        ("PCI ", part.bus),
        ("slot ", part.slot),
        ("serial number ", part.serial),
        ("optical module ", part.optics),
        ("switch port (LLDP) ", part.neighbour),
    )
    return "; ".join(f"{label}{text}" for label, text in named if text) or NOT_READ


def _times(run: RunInfo) -> str:
    begin = moment(run.started)
    try:
        end = begin + timedelta(seconds=run.seconds) if begin else None
    except (OverflowError, ValueError):
        end = None
    return f"{_utc(begin) if begin else run.started} to {_utc(end) if end else '?'}"


def _utc(when: datetime) -> str:
    return f"{when:%Y-%m-%d %H:%M:%S} UTC"
