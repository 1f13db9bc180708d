"""The HTML page of an examination: its findings, and everything else that was seen on the hosts."""

from doctor.judge.verdict import Report
from doctor.report.html.cards import cards_part, part_inside
from doctor.report.html.facts import facts_section
from doctor.report.html.heatmap import mesh_part
from doctor.report.html.markup import NOTHING as EMPTY
from doctor.report.html.markup import Html, join, listed, section, table, tag, time_tag
from doctor.report.html.page import as_html
from doctor.report.html.training import training_section
from doctor.report.page.examination import looked_again, page_of
from doctor.report.page.host_rows import (
    NOT_READ,
    NOTHING,
    OK,
    PART_READ,
    UNDECIDED,
    HostRow,
    by_trouble,
    host_rows,
)
from doctor.report.page.measurements import Measurement, measured
from doctor.report.page.rerun import repeat
from doctor.text.nodeset import fold
from doctor.text.speech import t_list

REPLAY = "doctor check --replay RUN.json --html PAGE.html"
_SIGNS = {OK: ("✓ ok", "good"), NOTHING: ("–", "soft")}
_OPEN = (NOT_READ, PART_READ, UNDECIDED)


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


def about_section(report: Report) -> Html:
    plan = report.plan
    source = f" ({report.run.hosts_from})" if report.run.hosts_from else ""
    counts = ", ".join(f"{count} {word}" for word, count in report.counts().items() if count)
    job = [
        ("job", f"{plan.ranks} rank{'' if plan.ranks == 1 else 's'}, backend {plan.carrier}"),
        ("head", f"{plan.head}, master port {plan.master_port}"),
        ("launch", plan.launch),
    ]
    version = report.run.exam_version
    rows = [
        ("started", time_tag(report.run.started)),
        ("took", f"{report.run.seconds:.1f} s"),
        ("hosts", f"{fold(plan.names)}{source}, by {report.run.transport}"),
        *([] if plan.of_node else job),
        ("exam", report.run.exam if version is None else f"{report.run.exam}/{version}"),
        ("checks", f"{len(report.checks.scopes)}{counts and f'; results: {counts}'}"),
        ("verdict", f"{report.verdict.value}, exit code {report.exit_code}"),
    ]
    listed = (join((tag("dt", name), tag("dd", said))) for name, said in rows if said)
    return section(
        "run",
        "This run",
        tag("dl", *listed),
        tag("h3", "The same again"),
        tag("pre", repeat(report), tabindex=0),
        tag("h3", "This page from the recording of the run"),
        tag("p", "RUN.json is what --save wrote, or the .run.json beside this page.", class_="soft"),
        tag("pre", REPLAY, tabindex=0),
    )


def hosts_section(report: Report) -> Html:
    rows = host_rows(report)
    if not rows:
        return EMPTY
    wrong, unread, well = by_trouble(rows)
    areas = [*wrong, *unread]
    said = "✓ examined and healthy, ✗ faulty, ! warning, ? not fully examined, – does not apply."
    healthy = [tag("p", f"ok on all: {', '.join(well)}", class_="soft")] if well else []
    by_area = table(
        "Hosts by area",
        ("hosts", "verdict", *areas),
        [_host_row(row, areas, report) for row in rows],
        kind="areas",
    )
    return section("hosts", "Hosts", tag("p", said, class_="soft"), by_area, *healthy)


def _host_row(row: HostRow, areas: list[str], report: Report) -> Html:
    cells = (_cell(row.cells.get(area, NOTHING)) for area in areas)
    words = {OK: "good", "FAIL": "fail", "HANG": "fail", "BROKEN": "fail", "WARN": "warn"}
    verdict = tag(
        "td", " ".join(row.verdict.split()), class_=words.get(row.verdict.partition(" ")[0], "open")
    )
    return tag(
        "tr", tag("th", listed(row.hosts, report.called), scope="row", class_="names"), verdict, *cells
    )


def _cell(said: str) -> Html:
    if said in _OPEN:
        return tag("td", f"? {said}", class_="open")
    sign, kind = _SIGNS.get(said, (f"! {said}", "warn") if "warning" in said else (f"✗ {said}", "fail"))
    return tag("td", sign, class_=kind)


def measured_section(report: Report) -> Html:
    seen = measured(report)
    lines = [_measurement("✓", "good", each) for each in seen.ticked]
    lines += [_measurement("?", "open", each) for each in seen.doubtful]
    lines += [_measurement("–", "soft", each) for each in seen.untried] if lines else []
    return section("measured", "Measured", tag("ul", *lines, class_="ticks") if lines else EMPTY)


def _measurement(sign: str, kind: str, each: Measurement) -> Html:
    return tag("li", tag("span", sign, class_=kind), tag("strong", each.area), tag("span", t_list(each.text)))
