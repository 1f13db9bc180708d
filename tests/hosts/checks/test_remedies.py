"""Every remedy that mends a fault is typed as it is printed, and then the fault is gone.

Remedies that use other tools are proved elsewhere: firewalls in test_firewall.py, NPUs in
test_npu_address.py. Remedies that need a new login, a restart or a decision are not marked as mending.
"""

from typing import Any

from doctor.judge.playbook import load_remedies
from tests.lab import Lab
from tests.support.cases import from_cases
from tests.support.faults import Examiner, apply_remedy, assert_healthy, injection

FAULTS = from_cases(__file__, "FAULTS", dict[str, dict[str, dict[str, Any]]])
"""Host -> remedy -> the fault that it mends there."""


def test_what_mends_is_typed_and_mends(lab: Lab, examine: Examiner) -> None:
    for host, faults in FAULTS.items():
        for inject in faults.values():
            injection(inject)(lab[host])
    outcome = examine()
    found = {
        (host, each["remedy"]["id"]): each
        for each in outcome.trouble
        if each["remedy"]
        for host in each["hosts"]
    }
    for host, faults in FAULTS.items():
        for remedy in faults:
            assert (host, remedy) in found, f"{remedy} on {host}; found: {[*found]}\n{outcome.text}"
    for each in outcome.trouble:
        if each["remedy"] and each["because"] is None:
            apply_remedy(lab, each)
    assert_healthy(examine())


def test_every_remedy_that_mends_is_among_them() -> None:
    mending = {name for name, recipe in load_remedies().recipes.items() if recipe.mends}
    assert mending == {remedy for faults in FAULTS.values() for remedy in faults}
