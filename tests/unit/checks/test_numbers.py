"""Numbers in findings are true: each row states them as a function of the input, and halved and doubled input
changes them. Every line of a check that writes a number is reached by a row.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from doctor.api import Check, Evidence
from doctor.judge.registry import bundled, find_checks
from doctor.model import Problem
from tests.support.cases import from_cases
from tests.support.each import each
from tests.support.number_rows import devices, host, job, network, tables
from tests.support.paths import ROOT
from tests.support.shown_numbers import Reached, Row, assert_true, number_lines, problems_of

CHECKS = {check.id: check for check in find_checks().checks}
ROWS: dict[str, Row] = {**host.ROWS, **network.ROWS, **devices.ROWS, **job.ROWS, **tables.ROWS}
SAID_BY = [*sorted(bundled("checks").glob("*.py")), *sorted((ROOT / "doctor/rules").glob("*.py"))]
OPEN = from_cases(__file__, "OPEN", set[tuple[str, ...]])
"""What an open question or a skipped check says."""


def check_of(name: str) -> Check:
    return CHECKS[name.partition(":")[0]]


@each("name", ROWS)
def test_a_finding_shows_the_numbers_of_its_input(name: str) -> None:
    assert_true(ROWS[name], check_of(name).run)


def without_row(paths: Sequence[Path], rows: dict[str, Row]) -> list[str]:
    """The lines that write a number and that no row reaches."""
    with Reached(paths) as reached:
        for name, row in rows.items():
            problems_of(check_of(name).run, row()[0])
    lines = number_lines(paths).items()
    return [
        f"{place[0]}:{place[1]} {text}"
        for place, text in lines
        if place not in reached.lines and (place[0], text) not in OPEN
    ]


def test_every_number_has_a_row() -> None:
    left = without_row(SAID_BY, ROWS)
    assert not left, "\n".join(["a test of numbers is missing:", *left])


def test_a_number_without_a_row_is_named() -> None:
    rows = {name: row for name, row in host.ROWS.items() if not name.startswith("swap-")}
    named = without_row([path for path in SAID_BY if path.stem in ("kernel", "memory")], rows)
    assert [line.partition(" ")[2] for line in named] == [
        "expect.swap_used_mb",
        *["swap.total // MB", "swap.used // MB"],
    ]


def test_a_wrong_number_is_red() -> None:
    def told(number: int, more: int = 0, _other: int = 0) -> Iterator[Problem]:
        yield Problem(f"{number + more} hosts fail", evidence=(Evidence("x", "node[1-7] at 10.0.0.1:80"),))

    assert_true(lambda hosts=4: ((hosts,), f"{hosts}"), told)
    for row in (
        lambda hosts=4: ((hosts, 1), f"{hosts}"),
        lambda hosts=4: ((4,), f"{hosts}"),
        lambda hosts=4, other=4: ((hosts, 0, other), f"{hosts}"),
        lambda hosts=4: ((hosts,), f"{hosts}!"),
    ):
        with pytest.raises(AssertionError):
            assert_true(row, told)
