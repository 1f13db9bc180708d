"""The HTML page of an examination: its findings, and everything else that was seen on the hosts."""

from __future__ import annotations

from doctor.judge.verdict import Report
from doctor.report.faults import looked_again, page_of
from doctor.report.html.about import about_section
from doctor.report.html.cards import cards_part, part_inside
from doctor.report.html.facts import facts_section
from doctor.report.html.heatmap import mesh_part
from doctor.report.html.hosts import hosts_section, measured_section
from doctor.report.html.markup import section, tag
from doctor.report.html.page import as_html
from doctor.report.html.training import training_section


def check_html(report: Report) -> bytes:
    page = page_of(report)
    mesh = mesh_part(report.seen.mesh, [host.name for host in report.hosts])
    left = [part_inside(part) for part in page.parts] or [tag("p", "Nothing that applies was left out.")]
    looked = looked_again(report)
    again = [tag("h3", looked.label), part_inside(looked)] if looked.pairs else []
    sections = (
        ("hosts", "Hosts", hosts_section(report)),
        ("findings", "Findings", section("findings", "Findings", *again, cards_part(page.cards))),
        ("measured", "Measured", measured_section(report)),
        ("unexamined", "Not examined", section("unexamined", "Not examined", *left)),
        ("network", "Network", section("network", "Network", mesh)),
        ("training", "Training", training_section(report)),
        ("facts", "Facts", facts_section(report)),
        ("run", "This run", about_section(report)),
    )
    return as_html(page, sections)
