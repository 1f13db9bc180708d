"""What is only quoted accuses nobody, what was tried again is over, and the first reason is told."""

from pathlib import Path

import pytest

from tests.support.cases import from_cases
from tests.support.fault_logs import pasted

KILLED = """=   BAD TERMINATION OF ONE OF YOUR APPLICATION PROCESSES
=   RANK {0} PID 81{0} RUNNING AT n1
=   KILLED BY SIGNAL: 9 (Killed)
"""


def test_kills_without_a_time_are_not_of_one_second(tmp_path: Path) -> None:
    found = pasted(tmp_path, "".join(map(KILLED.format, range(3))))
    assert not any("same second" in how for each in found.charges for how in each.how)


LOGS = from_cases(__file__, "LOGS", dict[str, dict[str, str]])


@pytest.mark.parametrize("name", LOGS)
def test_what_is_said(name: str, tmp_path: Path) -> None:
    case = LOGS[name]
    found = pasted(tmp_path, case["log"])
    roots = [each for each in found.charges if each.because is None]
    said = [roots[0].says, *(roots[0].remedy.commands if roots[0].remedy else ())] if roots else []
    assert found.outcome.value == case["outcome"]
    assert case.get("symptom", "") in ("", roots[0].symptom if roots else "")
    assert case.get("says", "") in "\n".join(said)
    assert len(roots) == int(case.get("causes", len(roots)))
