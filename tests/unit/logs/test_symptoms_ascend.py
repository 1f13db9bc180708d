"""The symptoms of Huawei's stack: samples are recognised, codes are answered, and no other number is taken
for a code.
"""

import re
from pathlib import Path

import pytest

from doctor.judge.registry import find_checks
from doctor.logs.model import Role
from doctor.logs.symptoms.load import load_symptoms
from tests.support.cases import cases, from_cases
from tests.support.each import each
from tests.support.fault_logs import matcher

SAMPLES = Path(__file__).parents[2] / "samples" / "logs" / "ascend"
FAMILIES = ("hccl", "cann", "acl", "npu", "torch_npu", "mindspore", "launch")
KNOWN = from_cases(__file__, "KNOWN", dict[str, str])
"""The symptoms of each sample. Empty: nothing is wrong there, or no single line shows it."""

TAKEN = from_cases(__file__, "TAKEN", dict[str, tuple[str, dict[str, str]]])


def found(text: str) -> set[str]:
    return {symptom.id for line in text.splitlines() for symptom, _ in matcher().decide(line, None)}


def test_every_sample_is_expected_to_show_something() -> None:
    assert {
        str(path.relative_to(SAMPLES)) for path in SAMPLES.rglob("*.*") if path.name != "README.md"
    } == set(KNOWN)


@each("name", KNOWN)
def test_a_sample_shows_its_symptoms_and_no_others(name: str) -> None:
    assert found((SAMPLES / name).read_text()) == set(KNOWN[name].split())


@pytest.mark.parametrize("name", TAKEN)
def test_what_the_line_says_of_the_parties_is_taken(name: str) -> None:
    id, expected = TAKEN[name]
    for line in (SAMPLES / name).read_text().splitlines():
        for symptom, taken in matcher().decide(line, None):
            if symptom.id == id:
                assert {key: taken.get(key) for key in expected} == expected
                return
    pytest.fail(f"{id} is not in {name}")


@cases
def test_a_code_is_known_in_the_forms_in_which_it_is_written(line: str, id: str) -> None:
    assert id in found(line)


@cases
def test_a_number_and_a_healthy_line_are_no_symptom(line: str) -> None:
    assert found(line) == set()


def typed() -> list[str]:
    """Every code in Huawei's tables of HCCL, CANN and ACL."""
    numbers = [*range(107000, 107032), *range(107035, 107041), *range(107042, 107046), *range(207000, 207022)]
    numbers += [*range(507000, 507058), *range(507899, 507905), 507914, 507915, 507916, 500001]
    codes = [f"EI{n:04d}" for n in range(1, 21)] + [f"EJ{n:04d}" for n in range(1, 5)]
    codes += [f"E{n}" for n in (*range(30003, 30010), *range(39001, 39012), 39999) if n != 39003]
    codes += [f"EE{n}" for n in (*range(1001, 1008), *range(1009, 1024), 2002, 4001, 4002, 4004, 9999)]
    codes += [f"EH{n:04d}" for n in range(1, 15)] + [f"EL{n:04d}" for n in range(1, 16)]
    codes += [f"EK{n:04d}" for n in (*range(1, 8), *range(201, 205), 9999)] + [
        f"EZ{n:04d}" for n in range(1, 8)
    ]
    codes += [
        "EZ0501",
        "EZ1001",
        "EZ2001",
        "EZ3002",
        "EZ3003",
        "EZ9010",
        "EZ9903",
        "EZ9999",
        "EI9999",
        "E19999",
    ]
    codes += ["0x40F84E00", "80E01801", "ERR00100", "ERR02200", "libhccl.so", "set_env.sh", "random mask"]
    return [*codes, *map(str, numbers), "load task fail", "parallel mode", "PyNative", "power of two"]


def test_a_code_leads_to_one_symptom_that_says_what_to_do() -> None:
    answers = {code: matcher().lookup.by_code(code) for code in typed()}
    assert {code for code, symptoms in answers.items() if len(symptoms) != 1} == set()
    assert {
        code
        for code, (symptom,) in answers.items()
        if not (symptom.causes and (symptom.remedy or symptom.checks))
    } == set()


@cases
def test_what_a_launch_may_answer_is_known(line: str, id: str) -> None:
    assert id in found(line)


def test_no_code_and_no_pattern_is_there_twice() -> None:
    codes: dict[str, str] = {}
    patterns: dict[tuple[str, ...], str] = {}
    for symptom in matcher().symptoms:
        if symptom.family not in FAMILIES:
            continue
        for code in symptom.codes:
            assert codes.setdefault(code.casefold(), symptom.id) == symptom.id
        for pattern in symptom.patterns:
            assert patterns.setdefault(pattern, symptom.id) == symptom.id


def test_what_only_wraps_an_error_is_no_cause() -> None:
    wrappers = [symptom for symptom in matcher().symptoms if "-wrap-" in symptom.id or "-wait-" in symptom.id]
    assert len(wrappers) > 10
    assert all(symptom.role is Role.CONSEQUENCE for symptom in wrappers if symptom.family in FAMILIES)


def test_titles_are_one_short_phrase() -> None:
    for symptom in matcher().symptoms:
        if symptom.family in FAMILIES:
            assert not re.search(r"[.!?]$", symptom.title), symptom.id
            assert len(symptom.title) <= 110, symptom.id


def test_the_files_hold_no_mistake() -> None:
    load_symptoms(checks=[check.id for check in find_checks().checks], trust=False)
