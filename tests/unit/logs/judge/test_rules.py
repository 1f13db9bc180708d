"""Each row of the judge of logs earns its place: without it, the answers that it names change."""

import sys
from dataclasses import replace

import pytest

from doctor.logs.judge.decide import RULES, Rule
from tests.exam.answers import answerer, read_all
from tests.exam.cases import Case, cases
from tests.support.paths import ROOT

TESTS = ROOT / "tests/unit/logs"
SAMPLES = ROOT / "tests/samples/logs"
FOREIGN = {each.name: each for each in cases()}


def _logs(rule: Rule) -> list[Case]:
    """The cases of the exam, and the recorded logs as cases without a truth."""
    blank = next(iter(FOREIGN.values()))
    names = [name for name in rule.cases if "::" not in name]
    return [FOREIGN.get(name) or replace(blank, name=name, log=SAMPLES / name) for name in names]


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.id)
def test_a_row_changes_the_answers_that_it_names(rule: Rule, monkeypatch: pytest.MonkeyPatch) -> None:
    logs, answer = read_all(_logs(rule)), answerer()
    before = {name: answer(read).headline for name, read in logs.items()}
    others = tuple(each for each in RULES if each is not rule)
    monkeypatch.setattr(sys.modules["doctor.logs.judge.decide"], "RULES", others)
    assert [name for name, read in logs.items() if answer(read).headline == before[name]] == []


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.id)
def test_a_row_names_what_it_is_for(rule: Rule) -> None:
    assert rule.cases
    assert all(FOREIGN[name].half == "seen" for name in rule.cases if name in FOREIGN)
    for name in rule.cases:
        file, _, test = name.partition("::")
        assert not test or f"\ndef {test}(" in (TESTS / file).read_text()


def test_the_names_of_the_rows_differ() -> None:
    assert len({each.id for each in RULES}) == len(RULES)
