"""An examination as Markdown: the verdict and the culprits, hosts, findings, tickets."""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta

from doctor import __version__
from doctor.expect import moment
from doctor.judge.hardware import Hardware, HardwarePart
from doctor.judge.verdict import HostReport, Report
from doctor.model import Finding
from doctor.report.markdown.page import MOST, card_line, card_text, fit, pair_line
from doctor.report.markdown.text import block, cell, code, folded, inline, row, table
from doctor.report.page.examination import looked_again, page_of, unexamined
from doctor.report.page.fault import commands, details, evidence
from doctor.report.page.host_rows import host_rows
from doctor.report.page.measurements import measured
from doctor.report.page.names import named, title, word
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
        f" Exit code {report.exit_code}. {inline(run.command)} began {inline(_started(report))}"
        f" and took {run.seconds:.1f} s (cluster-doctor {__version__})."
    )


def _hosts(report: Report, room: int) -> str:
    """The table of hosts by area: equal hosts share a row, unhealthy ones come first."""
    alike = host_rows(report)
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


NOT_READ = "not known"
BY_ROOT = "root alone may read it:"
SHOW_SERIAL = "sudo cat /sys/class/dmi/id/product_serial"


def tickets(report: Report) -> Iterator[tuple[str, str]]:
    """Host and ticket, for all hosts that a fault names."""
    against: dict[str, list[Finding]] = defaultdict(list)
    heads: dict[str, str] = {}
    for finding in report.faults:
        heads[finding.id] = _head(finding, report)  # once, whatever the number of its hosts
        for name in finding.hosts:
            against[name].append(finding)
    for host in report.hosts:
        if host.name in against:
            yield host.name, folded(t("Ticket:"), host.name, _ticket(report, host, against[host.name], heads))


def _ticket(report: Report, host: HostReport, against: list[Finding], heads: Mapping[str, str]) -> str:
    known = report.seen.hardware.get(host.name)
    rows = [("Machine", cell(known.model) or t(NOT_READ)), ("Serial number", _serial(known))] if known else []
    rows += [("Address", cell(host.address))]
    if known:
        rows += [("Network interface", cell(known.interface) or t(NOT_READ))]
        rows += [(part.name, _part(part)) for part in _parts(host.name, known, against)]
    else:
        rows += [("Machine", t("not read: the host did not answer"))]
    rows += [("Examined", cell(f"{_started(report)} to {_ended(report)} by cluster-doctor {__version__}"))]
    faults = (heads[finding.id] + _evidence_and_commands(report, host.name, finding) for finding in against)
    rows = [(cell(label), said) for label, said in rows]
    return table((t("Host"), cell(host.name)), rows) + "".join(faults)


def _serial(known: Hardware) -> str:
    if known.serial:
        return cell(known.serial)
    return f"{t(BY_ROOT)} {code(SHOW_SERIAL)}" if known.hidden else t(NOT_READ)


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
    return sign("; ").join(cell(f"{label}{text}") for label, text in named if text) or t(NOT_READ)


def _head(finding: Finding, report: Report) -> str:
    text = f"\n**{t(word(finding))}** {inline(title(finding))} ({code(finding.check)})"
    said = (
        f"{sign('; ')}{t(label)}{sign(': ')}{inline(said)}"
        for label, said in details(finding, report)
        if label != "hosts"
    )
    return f"{text}{''.join(said)}\n"


def _evidence_and_commands(report: Report, host: str, finding: Finding) -> str:
    _, seen = evidence(finding, report, host)
    text = ""
    if seen:
        text += "\n" + block("\n".join(f"{each.source}: {each.text}" for each in seen), "text")
    if typed := commands(finding):
        text += "\n" + block("\n".join(typed), "sh")
    return text


def _started(report: Report) -> str:
    begin = moment(report.run.started)
    return _utc(begin) if begin else report.run.started


def _ended(report: Report) -> str:
    begin = moment(report.run.started)
    try:
        return _utc(begin + timedelta(seconds=report.run.seconds)) if begin else "?"
    except (OverflowError, ValueError):
        return "?"


def _utc(when: datetime) -> str:
    return f"{when:%Y-%m-%d %H:%M:%S} UTC"
