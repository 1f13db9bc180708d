"""A ticket for a faulty host, in Markdown: the machine and part, its place, and what was seen when."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping

from doctor import __version__
from doctor.judge.hardware import Hardware, HardwarePart
from doctor.judge.verdict import HostReport, Report
from doctor.model import Finding
from doctor.report.fault import commands, details, evidence
from doctor.report.markdown_text import block, cell, code, folded, inline, table
from doctor.report.names import title, word
from doctor.report.run_times import ended, started
from doctor.text.speech import sign, t

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
    rows += [("Examined", cell(f"{started(report)} to {ended(report)} by cluster-doctor {__version__}"))]
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
