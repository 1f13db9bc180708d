"""The symptoms of faults of a loss are bundled and complete."""

import doctor.logs.loss.judge as judge
from doctor.judge.registry import bundled
from doctor.logs.symptoms.load import load_symptoms


def test_each_charge_has_its_entry_with_causes_checks_and_a_remedy() -> None:
    ours = {each.id: each for each in load_symptoms().symptoms if each.family == "loss"}
    assert (bundled("playbooks") / "symptoms" / "loss.yaml").is_file()
    assert set(ours) == {judge.NAN, judge.DIVERGING, judge.STALLED}
    for symptom in ours.values():
        assert symptom.causes
        assert symptom.checks
        assert symptom.remedy
        assert symptom.codes
