"""Logs of real runs whose ranks write without prefixes, with progress bars: how rank 1 died is found.

Under torchrun, mpirun, srun and a shell loop, with the Trainer of Hugging Face, and with Lightning.
"""

import pytest

from doctor.logs.model import LogOutcome
from tests.support.cases import from_cases
from tests.support.fault_logs import accusations, concluded
from tests.support.paths import ROOT

RUNS = ROOT / "tests" / "samples" / "logs" / "runs"
DIED = from_cases(__file__, "DIED", dict[str, tuple[str, int | None]])
"""The first cause and its rank. A shell loop does not say how a process ended."""

HEALTHY = sorted(path.name for path in (RUNS / "healthy").glob("*.log"))


@pytest.mark.parametrize("name", HEALTHY)
def test_nothing_is_said_of_a_run_that_ended_well(name: str) -> None:
    said = concluded(RUNS / "healthy" / name)
    assert (said.outcome, said.charges, said.odd) == (LogOutcome.CLEAN, (), ())


@pytest.mark.parametrize("name", sorted(path.name for path in RUNS.glob("*.log")))
def test_how_it_died_is_found(name: str) -> None:
    first = accusations(concluded(RUNS / name))[0]
    rank = next((each.rank for each in first.who), None)
    assert (first.symptom or first.brief, rank) == DIED[name]
