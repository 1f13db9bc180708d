"""What the checks of `hang --check` found below Python, as a part of the one report of the hang."""

from collections.abc import Sequence
from dataclasses import replace

from msgspec.structs import asdict
from msgspec.structs import replace as changed

from doctor.errors import EXIT_FAULT
from doctor.hang.envelope import HangFindingEntry
from doctor.judge.verdict import Report
from doctor.model import HostStatus
from doctor.report.files.envelope import Counts, HostEntry
from doctor.report.files.json import CheckReport
from doctor.report.page.card import CardKind, Page
from doctor.report.page.examination import unexamined
from doctor.report.page.fault import fault_cards
from doctor.report.page.headline import last_line, verdict_word, whom

RESULTS = ("checks", "passed", "fail", "warn", "unknown", "skip", "crash")


def sentence(own: str, checked: Report | None) -> str:
    """The headline of the report, whatever its format."""
    return own if checked is None else f"{own} doctor check: {last_line(checked)}"


def findings_below(below: CheckReport, after: int) -> tuple[HangFindingEntry, ...]:
    """The findings of the checks, numbered after those of the hang."""
    ids = {each.id: f"f{number}" for number, each in enumerate(below.findings, after + 1)}
    return tuple(
        HangFindingEntry(**{**asdict(each), "id": ids[each.id], "because": ids.get(each.because or "")})
        for each in below.findings
    )


def hosts_below(own: Sequence[HostEntry], below: CheckReport) -> tuple[HostEntry, ...]:
    """The hosts. A host is faulty if the checks found a fault on it."""
    guilty = {each.name: each for each in below.hosts if each.status is HostStatus.FAULTY}
    return tuple(
        changed(each, status=HostStatus.FAULTY, reason=guilty[each.name].reason)
        if each.name in guilty and each.status is not HostStatus.FAULTY
        else each
        for each in own
    )


def counts_below(own: Counts, below: CheckReport) -> Counts:
    return changed(own, **{name: getattr(own, name) + getattr(below.summary, name) for name in RESULTS})


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
