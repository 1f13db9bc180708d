"""A line that says in words of its own that something failed: what nobody knows is no all-clear."""

from pathlib import Path

import pytest

from doctor.logs.model import LogOutcome
from tests.support.cases import from_cases
from tests.support.fault_logs import pasted

UNKNOWN = from_cases(__file__, "UNKNOWN", tuple[str, ...])
HEALTHY = from_cases(__file__, "HEALTHY", tuple[str, ...])


@pytest.mark.parametrize("line", UNKNOWN)
def test_it_is_shown_and_no_all_clear(line: str, tmp_path: Path) -> None:
    assert pasted(tmp_path, f"it begins\n{line}\n").outcome is not LogOutcome.CLEAN


@pytest.mark.parametrize("line", HEALTHY)
def test_what_only_reads_like_it_is_not_a_complaint(line: str, tmp_path: Path) -> None:
    assert pasted(tmp_path, f"it begins\n{line}\nit ends\n").outcome is LogOutcome.CLEAN
