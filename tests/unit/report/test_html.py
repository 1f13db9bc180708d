"""The page is complete and self-contained, hostile text cannot break it, and screen readers can read it."""

import re
from dataclasses import replace
from functools import partial
from itertools import pairwise
from statistics import fmean

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from doctor.facts.smoke import JudgedRun
from doctor.hang.report import page_of as page_of_hang
from doctor.judge.fact_table import FactRow
from doctor.judge.verdict import HostReport, Report, SeenHosts
from doctor.logs.report import page_of as page_of_logs
from doctor.mesh import Link
from doctor.model import HostStatus
from doctor.report.html.cards import part_inside
from doctor.report.html.losses import losses_figure
from doctor.report.html.markup import tag, text
from doctor.report.html.page import POLICY, STYLE, as_html
from doctor.report.out.formats import check_html
from doctor.report.page.connections import connections, links_grid
from doctor.report.page.fault import fold_faults
from doctor.report.page.names import culprit
from doctor.report.page.smoke import LinkRates, healthy_curve
from doctor.report.page.smoke_losses import loss_drawings
from doctor.smoke.judge.loss import loss_summary
from doctor.text.printable import clean
from tests.support.hang.reports import judgements
from tests.support.html_page import Node, parsed
from tests.support.logs.conclusions import explaineds
from tests.support.recordings import mesh
from tests.support.reports import reports
from tests.unit.report.test_hostile import HOSTILE, hostile_report, unsafe

NAMES = reports()
OTHERS = {
    **{f"logs-{name}": partial(page_of_logs, each) for name, each in explaineds().items()},
    **{f"hang-{name}": partial(page_of_hang, each) for name, each in judgements().items()},
}
"""Pages of other commands."""
MARKUP = (
    "</pre></style></title><script>alert(1)</script><img src=//evil.example/x onerror=x>\"' onclick=x &lt;!--"
)
TAGS = set(
    re.findall(
        r"\w+",
        "html head meta title style body header main footer nav section article h1 h2 h3 p span strong code "
        "pre a ul li dl dt dd div details summary table caption wbr thead tbody tr th td figure figcaption "
        "time svg desc g line polyline polygon text",
    )
)
ATTRIBUTES = set(
    re.findall(
        r"\S+",
        "lang charset http-equiv content name id class href style role scope tabindex datetime aria-label "
        "aria-labelledby aria-hidden viewbox points x y x1 x2 y1 y2 text-anchor",
    )
)
each_report = pytest.mark.parametrize("name", NAMES)
each_page = pytest.mark.parametrize("name", [*NAMES, *OTHERS])


def losses_of(run: JudgedRun) -> Node:
    return parsed(f"<div>{''.join(map(losses_figure, loss_drawings(run, 'loss')))}</div>".encode())


def page_of(report: Report) -> Node:
    return parsed(check_html(report))


def page_named(name: str) -> Node:
    return page_of(NAMES[name]) if name in NAMES else parsed(as_html(OTHERS[name]()))


def check_safe(page: Node) -> None:
    for node in page.all():
        assert node.name in TAGS
        assert node.attributes.keys() <= ATTRIBUTES, node.name
        assert (node.attributes.get("href") or "#").startswith("#")
        assert re.fullmatch(r"(--share:[\d.]+)?", node.attributes.get("style") or "")
        assert unsafe((node.text if node.name != "style" else "").replace("\t", "")) == []


@pytest.mark.slow
@settings(max_examples=25, suppress_health_check=[HealthCheck.too_slow])
@given(evil=st.sampled_from([HOSTILE, MARKUP, HOSTILE + MARKUP]) | st.text(max_size=40))
def test_hostile_output_of_hosts_is_text_and_nothing_else(evil: str) -> None:
    check_safe(page_of(hostile_report(evil)))


def test_hostile_markup_is_shown_as_it_is() -> None:
    page = page_of(hostile_report(MARKUP))
    assert "<script>alert(1)</script>" in page.one("body").text
    check_safe(page)


@given(st.text(), st.text())
def test_text_and_attributes_read_back_as_what_they_were(inner: str, value: str) -> None:
    inner, value = (each.replace("\r", "") for each in (inner, value))
    node = parsed(tag("span", inner, text(inner), id=value).encode()).one("span")
    assert (node.text, node.attributes["id"]) == (clean(inner) * 2, clean(value))


def test_markup_joined_to_text_is_text() -> None:
    assert tag("p", tag("b", "x") + "<i>") == "<p>&lt;b&gt;x&lt;/b&gt;&lt;i&gt;</p>"


@each_page
def test_the_page_needs_nothing_else(name: str) -> None:
    page = page_named(name)
    check_safe(page)
    policy = page.all("meta")[1]
    assert policy.attributes == {"http-equiv": "Content-Security-Policy", "content": POLICY}
    assert POLICY.startswith("default-src 'none'; style-src 'unsafe-inline'")
    assert not re.search(r"url\(|@import|//", page.one("style").text + STYLE.read_text())


@each_page
def test_the_page_can_be_read_without_eyes(name: str) -> None:
    page = page_named(name)
    assert page.one("html").attributes["lang"] == "en"
    levels = [int(heading.name[1]) for heading in page.all("h1", "h2", "h3")]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after <= before + 1 for before, after in pairwise(levels))
    for each in page.all("table"):
        assert each.one("caption").text
        assert all(head.attributes.get("scope") in ("row", "col") for head in each.all("th"))
    for drawing in page.all("svg"):
        own = [node for node in drawing.inner if isinstance(node, Node) and node.name in ("title", "desc")]
        named = [node.attributes["id"] for node in own]
        assert drawing.attributes["aria-labelledby"] == " ".join(map(str, named))
        assert drawing.one("desc").text
    ids = [node.attributes["id"] for node in page.all() if "id" in node.attributes]
    assert len(ids) == len(set(ids))
    targets = {f"#{id}" for id in ids}
    assert {link.attributes["href"] for link in page.all("a")} <= targets
    assert {node.attributes["aria-labelledby"] for node in page.all("section")} <= set(ids)


@each_report
def test_every_finding_and_culprit_is_there(name: str) -> None:
    report = NAMES[name]
    page = page_of(report)
    whole = page.one("body").text
    faults = [finding for finding in report.findings if report.rules.faults(finding)]
    for finding in faults:
        assert finding.check in whole
    joined = fold_faults(faults)
    for fault in joined:
        assert culprit(fault.first) in whole
    if faults:
        title = page.one("h1").text
        assert joined[0].title in title
        assert culprit(joined[0].first) in title or not faults[0].hosts
        assert len(joined) == 1 or "more fault" in title or any(fault.cause for fault in joined)
    for finding in report.findings:
        assert finding.status.value != "unknown" or finding.check in whole or "smoke-*" in whole
    assert report.verdict.value in page.one("section", id="this-run").text


def test_the_verdict_is_the_reports() -> None:
    shown = {name: page_of(report).one("h1").text.partition(" ")[0] for name, report in NAMES.items()}
    assert {shown["healthy"], shown["need-three-hosts"]} == {"Healthy", "Faulty"}
    for name, report in NAMES.items():
        word = "Interrupted" if report.run.stopped_by else report.verdict.value.capitalize()
        assert shown[name] == word


def test_a_healthy_page_with_a_warning_is_not_green() -> None:
    sick = NAMES["sick-hosts"]
    warned = tuple(finding for finding in sick.findings if finding.status.value == "warn")
    healthy = NAMES["healthy"]
    assert page_of(healthy).one("h1").all("span")[0].attributes["class"] == "pill good"
    page = page_of(replace(healthy, findings=warned))
    assert page.one("h1").all("span")[0].attributes["class"] == "pill warn"
    assert "with 1 warning: node3" in page.one("h1").text


def test_what_was_not_tried_has_no_tick() -> None:
    healthy = NAMES["healthy"]
    assert healthy.seen.mesh
    cut = replace(
        healthy.seen.mesh,
        links=tuple(
            replace(link, outcome="untested") if link.source == "node1" else link
            for link in healthy.seen.mesh.links
            if link.target != "node2"
        ),
    )
    rows = (
        page_of(replace(healthy, seen=replace(healthy.seen, mesh=cut)))
        .one("table", class_="matrix")
        .one("tbody")
        .all("tr")
    )
    assert ["".join(cell.text or " " for cell in row.all("td")) for row in rows] == [
        " ···",
        "✓ ✓✓",
        "✓· ✓",
        "✓·✓ ",
    ]
    assert (
        "Not every pair was tried"
        in page_of(replace(healthy, seen=replace(healthy.seen, mesh=cut))).one("section", id="network").text
    )


def test_failed_connections_are_crosses_and_words() -> None:
    page = page_of(NAMES["sick-hosts"]).one("section", id="network")
    assert "9 of 12 connections between 4 hosts work; 3 of 6 pairs work both ways" in page.text
    crosses = [cell for cell in page.all("td") if cell.text == "✗"]
    assert {cell.attributes["aria-label"] for cell in crosses} == {
        f"node{n} does not reach node3" for n in (1, 2, 4)
    }
    rows = page.all("table")[1].one("tbody").all("tr")
    assert [[cell.text for cell in row.all("th", "td")] for row in rows] == [
        ["node[1-2,4]", "node3", "ephemeral port", "no answer"]
    ]


def test_facts_that_differ_are_marked_and_first() -> None:
    values = {"node1": 8, "node2": 8, "node3": 7, "node4": 8}
    shown = {host: f"{value} of 8" for host, value in values.items()}
    row = FactRow("devices", "devices", "devices", values, shown, frozenset({"node3"}))
    told = FactRow("mtu", "MTU", "network", {"node1": 1500}, {"node1": "1500"})
    page = page_of(replace(NAMES["healthy"], seen=SeenHosts((row, told)))).one("section", id="facts")
    cells = [cell.text for cell in page.all("td")]
    assert cells == ["! 7 of 8 (node3); 8 of 8 (node[1-2,4])", "1500 (node1); not reported (node[2-4])"]
    assert "fail" in (page.all("td")[0].attributes["class"] or "")


def test_slow_links_are_marked_and_named() -> None:
    rates = {("a", "b"): 10e9, ("a", "c"): 9.8e9, ("b", "c"): 4e9}
    links = sorted((LinkRates(pair, rate, 1e-4) for pair, rate in rates.items()), key=lambda link: link.rate)
    grid = links_grid(links, ["a", "b", "c"])
    assert grid
    page = parsed(f"<div>{part_inside(grid)}</div>".encode())
    assert "slowest 4.00 GB/s (b and c)." in page.text
    marked = [cell.text for cell in page.all("td") if "low" in (cell.attributes.get("class") or "")]
    assert marked == ["4.00 ▾", "4.00 ▾"]


def test_a_replica_that_does_not_learn_stands_out() -> None:
    (whole,) = NAMES["smoke-passed"].training.runs
    stuck = tuple(
        replace(seen, steps=tuple(msgspec.structs.replace(step, loss=5.0) for step in seen.steps))
        if seen.rank in (2, 3)
        else seen
        for seen in whole.result.ranks
    )
    learned = losses_of(whole)
    lagging = replace(whole, result=replace(whole.result, ranks=stuck))
    lags = losses_of(lagging)
    lines = [[line.attributes["class"] for line in page.all("polyline")] for page in (learned, lags)]
    assert lines == [
        ["floor", "expected", *["curve many"] * 4],
        ["floor", "expected", *["curve many"] * 3, "curve odd"],
    ]
    assert "Far above" not in learned.text
    assert "Far above the others: ranks 2-3." in lags.one("figcaption").text
    assert lags.one("text", class_="odd-name").text == "ranks 2-3"


def test_a_replica_without_numbers_is_named_and_shifts_no_other() -> None:
    (whole,) = NAMES["smoke-passed"].training.runs
    losses = {0: None, 1: None, 2: 5.0, 3: 5.0}
    ranks = tuple(
        replace(
            rank,
            steps=tuple(
                msgspec.structs.replace(step, loss=losses.get(rank.rank, step.loss)) for step in rank.steps
            ),
        )
        for rank in whole.result.ranks
    )
    page = losses_of(replace(whole, result=replace(whole.result, ranks=ranks)))
    said = page.one("figcaption").text
    assert "Far above the others: ranks 2-3." in said
    assert "Losses that are not numbers: ranks 0-1." in said
    assert len(page.all("polyline")) == 2 + 3


def test_healthy_losses_are_near_the_expected_curve() -> None:
    (whole,) = NAMES["smoke-passed"].training.runs
    should = healthy_curve(whole, 0)
    losses = [loss for loss in loss_summary(whole.result).curve if loss is not None]
    assert len(should) == len(losses) == 30
    assert fmean(abs(one - two) for one, two in zip(should, losses, strict=True)) < 0.5


@pytest.mark.slow
def test_512_hosts_make_a_page_that_opens() -> None:
    names = [f"node{n}" for n in range(1, 513)]
    sick = NAMES["sick-hosts"]
    wide = mesh(names[:4])
    links = [
        Link(one, two, "10.0.0.1", 40000, "ephemeral", "dropped" if "node7" in (one, two) else "ok")
        for number, one in enumerate(names)
        for two in (names[(number + step) % 512] for step in (1, 2, 4, 8, 16, 32, 64, 128, 256))
    ]
    findings = [
        replace(
            sick.findings[1], id=f"f{n}", hosts=(name,), nodeset=name, summary=f"fault {chr(64 + n % 26)}{n}"
        )
        for n, name in enumerate(names, 1)
    ]
    own = {name: f"10.0.{n // 256}.{n % 256}" for n, name in enumerate(names)}
    report = replace(
        sick,
        hosts=tuple(HostReport(name, name, "cpu", HostStatus.FAULTY, "shm-small") for name in names),
        findings=tuple(findings),
        seen=SeenHosts(
            tuple(FactRow(f"fact{n}", f"fact {n}", "network", own, own) for n in range(40)),
            mesh=replace(wide, links=tuple(links)),
        ),
    )
    page = check_html(report)
    assert len(page) < 3_000_000
    network = parsed(page).one("section", id="network")
    assert "node7" in network.text
    assert len(network.all("td")) < 1000


@each_page
def test_a_table_says_that_it_scrolls_and_its_first_column_stays(name: str) -> None:
    page, style = page_named(name), STYLE.read_text()
    regions = page.all("div")
    regions = [node for node in regions if node.attributes.get("class") == "scroll"]
    assert len(regions) >= len(page.all("table"))
    for region in regions:
        (hint,) = (node for node in region.all("p") if node.attributes.get("class") == "sideways")
        assert hint.text == "scroll sideways"
    assert ".scroll tr > :first-child { position: sticky; left: 0;" in style


def test_the_names_of_many_hosts_are_folded_in_each_cell() -> None:
    names = [f"gpu{number}-{number * 7 % 13}" for number in range(60)]
    down = tuple(Link(one, "head", "10.0.0.1", 29500, "master", "refused") for one in names)
    part = connections(replace(mesh(names[:3]), links=down), [*names, "head"])
    page = parsed(f"<div>{part_inside(part)}</div>".encode())
    cells = [cell for cell in page.all("th", "td") if "60 hosts" in cell.text]
    assert cells
    assert all(cell.all("details") for cell in cells)


def test_one_fault_is_named_once_at_the_top() -> None:
    page = page_named("hang-sleeps")
    assert page.one("h1").text == "Hangs rank 5 on node3 (pid 4050): sleeps in forward, train.py:57"
    assert "sleeps in forward" not in page.one("header").text.replace(page.one("h1").text, "")
    page = page_named("sixty-four-servers")
    assert page.one("h1").text == "Faulty 64 hosts: /dev/shm is too small for the ranks on this host"
    assert not [each for each in page.all("ul") if each.attributes.get("class") == "guilty"]


def test_the_lead_does_not_repeat_the_title() -> None:
    page = page_named("logs-oom")
    title = page.one("h1").text.partition(" ")[2]
    assert not [
        node for node in page.all("p") if node.attributes.get("class") == "lead" and title in node.text
    ]
