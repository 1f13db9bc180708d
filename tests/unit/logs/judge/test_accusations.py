"""A rank that others name is accused, whatever its own log says."""

from pathlib import Path

import pytest

from tests.support.fault_logs import concluded

BARRIER = " failed to pass monitoredBarrier in 3000 ms\n"
NAMES = "[rank0]:[E1120 07:22:05.676 ProcessGroupGloo.cpp:67] [Rank 0]: "
QUIET = "step 1 loss 2.0\nstep 2 loss 1.9\n"
LOUD = f"{QUIET}ERROR: data is late\n"


@pytest.mark.parametrize(
    ("named", "logs"),
    [("Rank 1", {}), ("Rank 1", {1: QUIET}), ("Rank 1", {1: LOUD}), ("Ranks 1, 3", {1: QUIET, 3: LOUD})],
)
def test_whom_another_names(named: str, logs: dict[int, str], tmp_path: Path) -> None:
    for rank, text in {0: f"{NAMES}{named}{BARRIER}", **logs}.items():
        (tmp_path / f"rank_{rank}.log").write_text(text)
    (charge,) = concluded(tmp_path).charges
    assert {party.rank for party in charge.who} == ({1} if named == "Rank 1" else {1, 3})
    assert charge.how == ("rank 0 says so, by name",)
