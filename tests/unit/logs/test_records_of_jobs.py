"""What tables and daemons say of a job that ended: sacct, scontrol, PBS, LSF, kubectl, oomd, earlyoom.
A sound record is silent, and so is that of another job below the word that the training is over.
"""

from pathlib import Path

import pytest

from doctor.logs.explanation import Explanation
from doctor.logs.model import LogOutcome
from doctor.logs.report_json import logs_report
from tests.support.cases import from_cases
from tests.support.fault_logs import pasted

FAULTS = from_cases(__file__, "FAULTS", dict[str, dict[str, str]])
SOUND = from_cases(__file__, "SOUND", dict[str, str])


@pytest.mark.parametrize("name", FAULTS)
def test_the_state_is_told(name: str, tmp_path: Path) -> None:
    case = FAULTS[name]
    found = pasted(tmp_path, case["log"])
    assert found.charges, found.outcome
    first = found.charges[0]
    assert first.symptom == case["symptom"], [(each.symptom, each.says) for each in found.charges]
    assert case["says"] in first.says
    typed = first.remedy.commands if first.remedy else ()
    assert case["do"] in " ".join(typed)
    assert [each.says for each in found.charges if each.because is None] == [first.says]
    assert logs_report(Explanation(found)).exit_code in (1, 3)


@pytest.mark.parametrize("name", SOUND)
def test_a_sound_twin_is_silent(name: str, tmp_path: Path) -> None:
    found = pasted(tmp_path, SOUND[name])
    told = [each.says for each in found.charges] or [each.text for each in found.odd]
    assert found.outcome is LogOutcome.CLEAN, told
