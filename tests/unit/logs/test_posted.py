"""Excerpts as people post them: which ranks are named, and which are not."""

from pathlib import Path

import pytest

from doctor.logs.model import LogOutcome
from doctor.model import UNDECIDED, Confidence
from tests.support.cases import cases, from_cases
from tests.support.fault_logs import concluded

STUCK = from_cases(__file__, "STUCK", str)
STUCK_LATER = from_cases(__file__, "STUCK_LATER", str)
TIMED_OUT = from_cases(__file__, "TIMED_OUT", str)
NOT_REACHED = from_cases(__file__, "NOT_REACHED", tuple[str, ...])
MPICH = from_cases(__file__, "MPICH", tuple[str, ...])
BROKEN_AT_ITS_END = from_cases(__file__, "BROKEN_AT_ITS_END", tuple[str, ...])


@cases
def test_what_it_says_is_named(lines: list[str], symptom: str, tmp_path: Path) -> None:
    said = concluded(written(tmp_path, lines))
    assert said.outcome is LogOutcome.NAMED
    assert said.charges[0].symptom == symptom


@pytest.mark.parametrize("stuck", [STUCK, STUCK_LATER], ids=["2.2", "2.6"])
def test_a_watchdog_that_is_stuck_accuses_nobody(stuck: str, tmp_path: Path) -> None:
    """All ranks print it if one of them is late."""
    for name, lines in {
        "all": [stuck.format(rank) for rank in range(4)],
        "after": [TIMED_OUT.format(2), *(stuck.format(rank) for rank in (1, 3))],
    }.items():
        said = concluded(written(tmp_path, lines, name))
        assert said.outcome is not LogOutcome.CLEAN
        assert all(each.confidence is not Confidence.CERTAIN for each in said.charges)


def test_a_process_that_mpich_tells_of_is_not_nothing(tmp_path: Path) -> None:
    assert concluded(written(tmp_path, MPICH)).outcome is not LogOutcome.CLEAN


def test_a_heap_that_breaks_at_the_end_is_no_reason(tmp_path: Path) -> None:
    said = concluded(written(tmp_path, BROKEN_AT_ITS_END))
    assert "python-heap-broken" not in {each.symptom for each in said.charges if each.because is None}


def test_a_rendezvous_that_was_not_reached_accuses_neither_end(tmp_path: Path) -> None:
    said = concluded(written(tmp_path, NOT_REACHED))
    assert UNDECIDED in said.charges[0].says or said.charges[0].confidence is not Confidence.CERTAIN


def written(folder: Path, lines: list[str] | tuple[str, ...], name: str = "train") -> Path:
    path = folder / f"{name}.log"
    path.write_text("".join(f"{line}\n" for line in lines))
    return path
