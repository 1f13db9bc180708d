"""The page: one file that needs no other, no network and no script."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from doctor.judge.verdict import Report
from doctor.report.html.about import about_section
from doctor.report.html.facts import facts_section
from doctor.report.html.findings import findings_section, unexamined_section
from doctor.report.html.head import page_head, plain_title
from doctor.report.html.heatmap import mesh_part
from doctor.report.html.hosts import hosts_section, measured_section
from doctor.report.html.markup import Html, join, section, tag
from doctor.report.html.training import training_section

POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
"""Whatever might slip into the page, nothing is fetched, run or sent."""
STYLE = Path(__file__).with_name("page.css")
Section = Callable[[Report], Html]


def network_section(report: Report) -> Html:
    hosts = [host.name for host in report.hosts]
    return section("network", "Network", mesh_part(report.mesh, hosts))


PARTS: tuple[tuple[str, str, Section], ...] = (
    ("hosts", "Hosts", hosts_section),
    ("findings", "Findings", findings_section),
    ("measured", "Measured", measured_section),
    ("unexamined", "Not examined", unexamined_section),
    ("network", "Network", network_section),
    ("training", "Training", training_section),
    ("facts", "Facts", facts_section),
    ("run", "This run", about_section),
)


def as_html(report: Report) -> bytes:
    made = [(id, title, make(report)) for id, title, make in PARTS]
    there = [(id, title, part) for id, title, part in made if part]
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", http_equiv="Content-Security-Policy", content=POLICY),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="color-scheme", content="light dark"),
        tag("meta", name="referrer", content="no-referrer"),
        plain_title(report),
        Html(f"<style>{STYLE.read_text()}</style>"),
    )
    top = page_head(report, [(id, title) for id, title, _ in there])
    body = tag("body", top, tag("main", *(part for _, _, part in there)))
    return join((Html("<!doctype html>\n"), tag("html", head, body, lang="en"), Html("\n"))).encode()
