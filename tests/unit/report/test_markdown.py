"""Markdown, read by a Markdown parser: foreign text stays text or code."""

import re
from collections.abc import Iterator
from dataclasses import replace

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from markdown_it.token import Token

from doctor.judge.hardware import Hardware
from doctor.judge.verdict import Report, SeenHosts, Training
from doctor.model import Status
from doctor.report.markdown.page import MOST, as_markdown
from doctor.report.markdown.text import block, cell, code, inline, row
from doctor.report.out.formats import check_markdown
from doctor.report.page.card import Card, CardKind, Page, Row, Table
from doctor.text.language import Language
from doctor.text.printable import clean_line
from doctor.text.speech import speaking
from tests.support.cases import cases
from tests.support.poison import furnished, many, nasty_text, poisoned
from tests.support.reports import reports

READ = MarkdownIt("commonmark").enable(["table", "strikethrough"])
OURS = re.compile(
    r"<details><summary>(?:Seen|Seen on|Lines|Stack|Ticket:)(?: <code>[^<>]*</code>)?</summary>|</details>"
)
BLOCKS = {
    *("heading_open", "heading_close", "paragraph_open", "paragraph_close", "inline", "fence", "html_block"),
    *("bullet_list_open", "bullet_list_close", "list_item_open", "list_item_close"),
    *(f"{part}_{end}" for part in ("table", "thead", "tbody", "tr", "th", "td") for end in ("open", "close")),
}
FRAME = {"heading_open h2", "heading_open h4", "fence code", "html_block ", "tr_open tr"}
"""The number of these does not depend on the hosts' text. Rows of a list, and sections, come and go.
"""
INLINE = {"text", "code_inline", "strong_open", "strong_close"}
ACTS = re.compile(r"[@#<&~$]|(?i:\bgh-\d)|!\d|://|(?i:\bwww\.)|(?<!\d):(?a:\w+):")
"""What a renderer may recognise in text: mentions, references, HTML, mathematics, links, emoji."""


def text_of(made: Report) -> str:
    return check_markdown(made).decode()


def tokens(text: str) -> Iterator[Token]:
    for token in READ.parse(text):
        yield token
        yield from token.children or ()


def shape(text: str) -> list[str]:
    """Its blocks, after checking that they and their contents are harmless."""
    found = []
    for token in tokens(text):
        assert token.type in BLOCKS | INLINE, token
        if token.type == "html_block":
            assert all(OURS.fullmatch(line) for line in token.content.splitlines() if line), token.content
        if token.type == "text":
            assert not ACTS.search(token.content), token.content
        if token.type in BLOCKS:
            found.append(f"{token.type} {token.tag}")
    return found


@pytest.mark.parametrize("name", furnished())
def test_every_kind_of_report(name: str) -> None:
    made = furnished()[name]
    text = text_of(made)
    shape(text)
    assert f", exit code {made.exit_code}\n" in text
    for finding in made.findings:
        assert f"`{finding.check}`" in text or finding.status is Status.UNKNOWN
    named = {host for finding in made.findings if made.rules.faults(finding) for host in finding.hosts}
    assert set(re.findall(r"Ticket: <code>(.*)</code>", text)) == named


def test_the_verdict_and_the_culprits_come_first() -> None:
    first, *_ = text_of(reports()["sick-hosts"]).partition("### Hosts")
    assert first.startswith("## ")
    lines = [line for line in first.splitlines() if line.startswith("- **")]
    assert [line.partition("** ")[0] for line in lines] == ["- **FAIL", "- **FAIL", "- **FAIL", "- **WARN"]
    assert all(name in first for name in ("**node2**", "**node3**", "`shm-small`", "`hostname-loopback`"))


def test_hosts_that_are_alike_share_a_row_and_what_was_measured_is_said() -> None:
    text = text_of(reports()["healthy"])
    assert re.search(r"^\| `node\[1-4\]` \|( ok \|)+ ok \|$", text, re.MULTILINE)
    assert "- \u2713 **network**: 12 of 12 connections work both ways" in text
    assert re.search(r"^- – \*\*not tried\*\*: .*training \(doctor smoke\)$", text, re.MULTILINE)
    assert "Tickets" not in text


def test_what_was_not_looked_at_is_said() -> None:
    text = text_of(reports()["no-root"])
    assert "### Not examined" in text
    assert "- **kernel-log**: needs root" in text
    assert "- **`smoke-*`**: no host passed the checks" in text_of(reports()["smoke-not-made"])
    made = reports()["smoke-not-repeated"]
    why = dict.fromkeys(("node1", "node2"), "the last smoke run did not pass")
    hosts = tuple(replace(host, reason=why.get(host.name, host.reason)) for host in made.hosts)
    text = text_of(replace(made, hosts=hosts, training=Training(untrained=why)))
    assert "- **training on `node[1-2]`**: the last smoke run did not pass" in text


def test_a_ticket_has_what_finds_the_part() -> None:
    _, _, ticket = text_of(furnished()["same-fault-twice"]).partition("Ticket: <code>node3</code>")
    for line in (
        "| Machine | Maker Model |",
        "| Serial number | ABC123 |",
        "| Address | 10.0.0.3 |",
        "| Network interface | eth0, MAC 0a:0b |",
        "| NPU 3 | 910B; PCI 0000:c1:00; slot 5; serial number S1; optical module Hisense LMQ8611-PC+;"
        " switch port (LLDP) 200GE1/0/7 of Example Switch |",
        "| Examined | 2026-11-20 09:00:00 UTC to 2026-11-20 09:00:01 UTC by cluster-doctor",
        "df -kP /dev/shm: 65536 kB in all, 65536 kB free",
    ):
        assert line in ticket


@cases
def test_a_serial_number_that_is_not_known(known: Hardware | None, said: str) -> None:
    made = reports()["same-fault-twice"]
    assert said in text_of(
        replace(made, seen=SeenHosts(made.seen.facts, hardware={"node2": known} if known else {}))
    )


def test_a_ticket_shows_what_was_seen_on_its_own_host() -> None:
    """A finding folded over several hosts has the evidence of only one of them."""
    made = reports()["same-fault-twice"]
    (finding,) = made.findings
    results = tuple(
        replace(
            r,
            problem=replace(
                r.problem, evidence=tuple(replace(e, text=f"of {r.hosts[0]}") for e in r.problem.evidence)
            ),
        )
        if r.problem
        else r
        for r in made.results
    )
    evidence = tuple(replace(e, text="of node2") for e in finding.evidence)
    text = text_of(replace(made, results=results, findings=(replace(finding, evidence=evidence),)))
    assert "Seen on <code>node2</code>" in text
    _, _, ticket = text.partition("Ticket: <code>node3</code>")
    assert "of node3" in ticket
    assert "of node2" not in ticket


@pytest.mark.slow
@settings(max_examples=80, deadline=None)
@given(kind=st.sampled_from(list(furnished())), evil=nasty_text, around=st.booleans())
@example(kind="sick-hosts", evil="\n\n```\n</details>\n# x\n", around=True)
@example(kind="unreachable", evil="| ` | \\| `` @a #1", around=True)
@example(kind="sick-hosts", evil="0a:0b末:", around=True)
def test_hostile_text_in_every_field(kind: str, evil: str, around: bool) -> None:
    made = furnished()[kind]
    text = text_of(poisoned(made, evil, around=around))
    assert len(text) < 65_536
    found, before = shape(text), shape(text_of(made))
    if "did not fit" not in text:
        assert [each for each in found if each in FRAME] == [each for each in before if each in FRAME]


@given(nasty_text | st.text())
def test_code_shows_what_it_was_given(text: str) -> None:
    line = clean_line(" ".join(text.split()))
    _, shown = READ.parse(f"x {code(text)} x")[:2]
    found = [(token.type, token.content) for token in shown.children or ()]
    assert found == ([("text", "x "), ("code_inline", line), ("text", " x")] if line else [("text", "x  x")])


@given(st.lists(nasty_text, min_size=3, max_size=3))
def test_a_cell_is_one_cell(texts: list[str]) -> None:
    page = row(("a", "b", "c")) + row(("---",) * 3) + row(map(cell, texts)) + row(("x", "y", "z"))
    cells = [token for token in READ.parse(page) if token.type == "td_open"]
    assert len(cells) == 6


@given(nasty_text)
def test_a_block_ends_where_it_ends(text: str) -> None:
    fence, *rest = READ.parse(block(text, "text") + "\nx\n")
    assert (fence.type, fence.info) == ("fence", "text")
    assert [token.content for token in rest if token.type == "inline"] == ["x"]


@cases
def test_words_that_could_act_become_code(text: str, shown: str) -> None:
    assert inline(text) == shown


def test_a_chinese_page_has_chinese_heads_marks_and_asides() -> None:
    card = Card(
        "HANG",
        CardKind.FAIL,
        "rank 5 on node3",
        "computes",
        "; since 1 min 30 s",
        "certain",
        (Row("why", ("a",)),),
    )
    page = Page("hang", cards=(card,), parts=(Table("Ranks", ("RANK", "HOST"), (("5", "node3"),)),))
    with speaking(Language.ZH):
        text = as_markdown(page).decode()
    for shown in (
        "### 卡死 node3 上的 rank 5：",
        "；持续 1 分 30 秒 (`确定`)",
        "- 原因：a",
        "| RANK | 主机 |",
    ):
        assert shown in text


@pytest.mark.slow
def test_512_hosts_fit_into_a_comment_and_what_does_not_is_counted() -> None:
    made = many()
    text = text_of(made)
    assert len(text) <= MOST
    shape(text)
    tickets, (left,) = text.count("Ticket:"), re.findall(r"(\d+) more tickets did not fit", text)
    assert tickets + int(left) == 512
    assert tickets > 10
