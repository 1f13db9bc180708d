"""What the checks of `hang --check` found below Python, as a part of the one report of the hang."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from msgspec.structs import asdict
from msgspec.structs import replace as changed

from doctor.errors import EXIT_FAULT
from doctor.hang.envelope import HangFindingEntry
from doctor.judge.verdict import Report
from doctor.model import HostStatus
from doctor.report.files.envelope import counts
from doctor.report.files.json import CheckReport
from doctor.report.page.card import CardKind, Page
from doctor.report.page.examination import unexamined
from doctor.report.page.fault import fault_cards
from doctor.report.page.headline import last_line, verdict_word, whom

RESULTS = ("checks", "passed", "fail", "warn", "unknown", "skip", "crash")


def sentence(own: str, checked: Report | None) -> str:
    """The headline of the report, whatever its format."""
    return own if checked is None else f"{own} doctor check: {last_line(checked)}"


def joined(own: Mapping[str, Any], below: CheckReport) -> dict[str, Any]:
    """What the report of the hang says, with what the checks found behind it."""
    ids = {each.id: f"f{number}" for number, each in enumerate(below.findings, len(own["findings"]) + 1)}
    more = (
        HangFindingEntry(**{**asdict(each), "id": ids[each.id], "because": ids.get(each.because or "")})
        for each in below.findings
    )
    guilty = {each.name: each for each in below.hosts if each.status is HostStatus.FAULTY}
    hosts = tuple(
        changed(each, status=HostStatus.FAULTY, reason=guilty[each.name].reason)
        if each.name in guilty and each.status is not HostStatus.FAULTY
        else each
        for each in own["hosts"]
    )
    summary = counts(hosts, own["results"])
    sums = {name: getattr(summary, name) + getattr(below.summary, name) for name in RESULTS}
    return {
        **own,
        "summary": changed(summary, **sums),
        "hosts": hosts,
        "findings": (*own["findings"], *more),
        "results": (*own["results"], *below.results),
    }


def with_checks(page: Page, checked: Report) -> Page:
    """The page of the hang, with the findings of the checks added."""
    faulty, guilty = checked.exit_code == EXIT_FAULT, whom(checked)
    cards, left = fault_cards(checked), unexamined(checked)
    if faulty and page.kind is not CardKind.FAIL:
        word, kind = verdict_word(checked)
        page = replace(page, word=word, kind=kind, title=guilty)
    elif faulty:
        page = replace(page, title=f"{page.title}; {guilty}")
    return replace(
        page,
        says=sentence(page.says, checked),
        cards=(*page.cards, *cards),
        cards_title="Findings" if cards else page.cards_title,
        parts=(*page.parts, *((left,) if left.pairs else ())),
    )
