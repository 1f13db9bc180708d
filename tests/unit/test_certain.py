"""A fault is certain, and a risk is a warning: no sentence of a fault says that something may happen."""

import re
from pathlib import Path

from doctor.api import Check, Damage, Severity
from doctor.judge.registry import find_checks
from doctor.text.catalogue import read_catalogue
from tests.support.cases import from_cases
from tests.support.each import each
from tests.support.fault_texts import fault_texts, texts_of
from tests.support.paths import ROOT

RISK = re.compile(
    r"\b(?:may|might|perhaps|possibly|probably|maybe|likely|can|could(?! not\b)|not sure)\b", re.IGNORECASE
)
NEVER = re.compile(r"\b(?:no|none|nothing)\b[^.:;]*\b(?:can|could)\b")
"""That nothing can happen is a fact."""
DOUBT = re.compile(rf"{RISK.pattern}|[Pp]ossible cause|\Astrong\Z", re.IGNORECASE)
RISK_IN_CHINESE = re.compile(r"(?<!不)可能|也许|或许|大概|恐怕")


def names_a_risk(text: str) -> bool:
    return bool(RISK.search(NEVER.sub("", text)))


@each("told", [f"{where}: {text}" for where, text in fault_texts()])
def test_a_fault_is_certain(told: str) -> None:
    assert not names_a_risk(told.partition(": ")[2]), "say what is so, or make it a warning"


@each("chinese", read_catalogue(ROOT / "doctor/text/zh").items())
def test_a_translation_is_as_certain_as_its_english(chinese: tuple[str, str]) -> None:
    english, said = chinese
    assert not RISK_IN_CHINESE.search(said) or DOUBT.search(english)


@each("check", [check for check in find_checks().checks if check.damage is Damage.RISK])
def test_a_check_of_a_risk_warns(check: Check) -> None:
    assert check.severity is Severity.WARN


CHECKS = from_cases(__file__, "CHECKS", str)


def test_the_rule_sees_what_a_fault_can_say_and_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "one.py").write_text(CHECKS)
    assert {text for _, text in texts_of([tmp_path]) if names_a_risk(text)} == {
        "{} can break",
        "this could be so",
        "perhaps this one",
    }


def test_what_is_a_risk() -> None:
    assert all(map(names_a_risk, ("it may fail", "could be lost", "can break: no port is free")))
    facts = ("errors that could not be corrected", "no file can be created", "it cannot listen")
    assert not any(map(names_a_risk, facts))
