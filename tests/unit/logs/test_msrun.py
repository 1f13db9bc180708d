"""Logs of real runs of msrun (MindSpore 2.10, four workers on CPUs): which worker was the first.

If one worker ends, msrun ends the others, and the scheduler names the one that it misses first, which may be
any. MindSpore on CPUs ends a rank that waited 30 s for another one, so that the one that waits may end first.
"""

import pytest

from doctor.logs.model import Conclusion, LogOutcome
from doctor.model import Confidence
from tests.support.cases import from_cases
from tests.support.fault_logs import accusations, concluded
from tests.support.paths import ROOT

RUNS = ROOT / "tests" / "samples" / "logs" / "runs" / "msrun"
FIRST = from_cases(__file__, "FIRST", dict[str, tuple[str, int]])
SAID_BY_MSRUN = {"kill", "segv", "exit"}
"""Nothing but the output of msrun tells who was the first."""


def charged(found: Conclusion) -> tuple[str, list[int | None]]:
    charge = accusations(found)[0]
    return charge.symptom or charge.brief, [party.rank for party in charge.who]


@pytest.mark.parametrize("name", FIRST)
def test_the_worker_that_was_first_is_named(name: str) -> None:
    found = concluded(RUNS / name)
    assert found.outcome is LogOutcome.NAMED
    said, ranks = charged(found)
    assert (said, ranks) == (FIRST[name][0], [FIRST[name][1]])


@pytest.mark.parametrize("name", FIRST)
def test_without_the_output_of_msrun_nobody_is_named_wrongly(name: str) -> None:
    found = concluded(*(path for path in sorted((RUNS / name).iterdir()) if path.name != "msrun.log"))
    if name in SAID_BY_MSRUN:
        assert charged(found) == ("mindspore-node-timed-out", [])
        assert found.charges[0].confidence is Confidence.SUSPECT
    else:
        assert charged(found)[1] == [FIRST[name][1]]


def test_a_worker_that_left_without_an_error_is_not_guessed() -> None:
    assert charged(concluded(RUNS / "zero")) == ("mindspore-node-timed-out", [])
