"""The attempts of a job on one page, which lies beside their folders."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from doctor.report.card import Card, CardKind, Page, Row, RowForm
from doctor.run.envelope import AttemptEntry
from doctor.text.durations import duration


def attempts_page(attempts: Sequence[AttemptEntry], started: str) -> Page:
    last = attempts[-1]
    good = last.exit_code == 0
    return Page(
        "run",
        started,
        "Finished" if good else "Failed",
        CardKind.GOOD if good else CardKind.FAIL,
        f"{len(attempts)} attempts",
        f"{len(attempts)} attempts; the last one: {_says(last)}.",
        cards=tuple(_card(number, each) for number, each in enumerate(attempts, 1)),
        cards_title="Attempts",
    )


def _card(number: int, attempt: AttemptEntry) -> Card:
    good = attempt.exit_code == 0
    return Card(
        "OK" if good else "FAIL",
        CardKind.GOOD if good else CardKind.FAIL,
        f"attempt {number}",
        _says(attempt),
        rows=tuple(_rows(attempt)),
    )


def _says(attempt: AttemptEntry) -> str:
    if attempt.exit_code is None:
        return "not started"
    ended = "ended by doctor" if attempt.ended else f"exit code {attempt.exit_code}"
    return f"{ended}, after {duration(attempt.seconds)}"


def _rows(attempt: AttemptEntry) -> Iterator[Row]:
    yield Row("hosts", attempt.hosts, RowForm.HOSTS)
    yield Row("left out", attempt.left_out, RowForm.HOSTS)
    told = (*(each.says for each in attempt.looks), *attempt.losses)
    yield Row("found", told)
    yield Row("why", tuple(filter(None, (attempt.ended, attempt.by_others, attempt.why))))
    if attempt.folder:
        yield Row("reports", (f"{Path(attempt.folder).name}/",))
