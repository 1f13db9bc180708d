"""The bundled symptoms: each matches its own example, and none matches a healthy log."""

from collections.abc import Iterator
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path

import pytest

from doctor.judge.registry import find_checks
from doctor.logs.model import Role, Symptom
from doctor.logs.sentence import sentence
from doctor.logs.symptoms.load import load_symptoms
from doctor.logs.symptoms.match import Matcher
from tests.support.cases import cases, from_cases
from tests.support.paths import ROOT

SAMPLES = Path(__file__).parents[2] / "samples" / "logs"
FAMILIES = sorted(path.stem for path in (ROOT / "playbooks" / "symptoms").glob("*.yaml"))


@cache
def bundled() -> tuple[Symptom, ...]:
    return load_symptoms(checks=[check.id for check in find_checks().checks], trust=False).symptoms


@cache
def matcher() -> Matcher:
    return Matcher(bundled())


def ids(text: str) -> list[str]:
    return [symptom.id for symptom, _ in matcher().decide(text, None)]


def seen(path: Path) -> set[str]:
    """The symptoms of a file, found with the prefilter."""
    lines = path.read_bytes().split(b"\n")
    possible = matcher().possible({sentence(line) for line in lines})
    held = [line.decode() for line in lines if sentence(line) in possible and matcher().holds(line)]
    return {id for line in held for id in ids(line)}


@pytest.mark.parametrize("family", FAMILIES)
def test_each_matches_its_own_examples(family: str) -> None:
    odd = [text for symptom in bundled() if symptom.family == family for text in _odd(symptom)]
    assert odd == []


def _odd(symptom: Symptom) -> Iterator[str]:
    for example in symptom.examples if symptom.patterns else ():
        form = next(iter(symptom.forms), None)
        found = [each for each, _ in matcher().decide(example, form)]
        if not any(_stands_for(each, symptom) for each in found):
            yield f"{symptom.id}: {[each.id for each in found]} of {example}"
        line = example.encode()
        if not (matcher().possible([sentence(line)]) and matcher().holds(line)):
            yield f"{symptom.id}: passed over: {example}"
    for text in symptom.counter_examples:
        if symptom.id in ids(text):
            yield f"{symptom.id}: {text}"


PRINTED = from_cases(__file__, "PRINTED", tuple[str, ...])
"""Made-up lines of each spelling, in their order."""
STEP = "global_step: {}, loss: 1.997"


def test_a_number_is_known_as_it_is_printed_and_not_alone() -> None:
    numbered = [symptom for symptom in bundled() if symptom.number]
    assert len(numbered) > 100
    assert {symptom.patterns[13:14] != () for symptom in numbered} == {True, False}
    odd = []
    for symptom in numbered:
        known = [f"{symptom.number}" in "".join(pattern) for pattern in symptom.patterns].count(True)
        for template in (*PRINTED[:known], STEP):
            line = template.format(symptom.number).encode()
            passed = bool(matcher().possible([sentence(line)]) and matcher().holds(line))
            found = passed and symptom in [each for each, _ in matcher().decide(line.decode(), None)]
            odd += [] if found == (template != STEP) else [line.decode()]
    assert odd == []


def _stands_for(other: Symptom, symptom: Symptom) -> bool:
    """Whether it is the same, or may replace it in one line."""
    explains = any(fnmatchcase(symptom.id, glob) for glob in other.explains)
    return other is symptom or other.role is Role.ADVICE or explains


@pytest.mark.parametrize("family", FAMILIES)
def test_each_says_what_it_is(family: str) -> None:
    odd = [text for symptom in bundled() if symptom.family == family for text in _unsaid(symptom)]
    assert odd == []


def _unsaid(symptom: Symptom) -> Iterator[str]:
    if symptom.title.endswith(".") or symptom.title != symptom.title.strip():
        yield f"{symptom.id}: {symptom.title}"
    if symptom.role is Role.NAMES and not (symptom.take or symptom.below) and symptom.patterns:
        yield f"{symptom.id}: it names a culprit, and nothing takes the name"
    for cause in symptom.causes:  # a comma in an unquoted list makes two texts of one
        if cause.startswith(("or ", "and ", "such as ", "as ", "is ", "then ", "but ")):
            yield f"{symptom.id}: {cause}"


NO_COMPLAINT = (Role.ADVICE, Role.STATES)
OURS = ("torch", "nccl", "slurm", "mpi", "kernel")


@pytest.mark.parametrize("family", OURS)
def test_each_says_where_it_was_seen_and_why(family: str) -> None:
    for symptom in bundled():
        if symptom.family == family:
            assert symptom.sources, symptom.id
            assert symptom.causes or symptom.role in NO_COMPLAINT, symptom.id
            assert all(each.count("(") == each.count(")") for each in symptom.causes), symptom.id


TOLD = (
    *("kernel", "nccl", "mpi", "slurm", "ucx", "kubernetes", "rocm", "launch", "schedulers", "mindspore"),
    "cann",
)


@pytest.mark.parametrize("family", TOLD)
def test_each_says_what_to_do(family: str) -> None:
    several = [each for each in bundled() if each.family == family and each.role not in NO_COMPLAINT]
    assert [each.id for each in several if not each.remedy] == []


@pytest.mark.parametrize("path", sorted((SAMPLES / "healthy").iterdir()), ids=lambda path: path.name)
def test_a_healthy_log_holds_none(path: Path) -> None:
    states = {"effect", "differs"}
    alone = {each.id for each in bundled() if each.needs not in states and each.role not in NO_COMPLAINT}
    assert not seen(path) & alone


SEEN = from_cases(__file__, "SEEN", dict[str, set[str]])


@pytest.mark.parametrize("name", SEEN)
def test_a_sample_holds_what_it_shows(name: str) -> None:
    assert seen(SAMPLES / name) == SEEN[name]


def test_every_sample_is_named() -> None:
    here = {
        str(path.relative_to(SAMPLES))
        for folder in ("torch_c10d", "nccl", "dmesg")
        for path in (SAMPLES / folder).iterdir()
    }
    assert here == set(SEEN)


@cases
def test_values_are_taken(line: str, id: str, values: dict[str, str]) -> None:
    (found,) = [taken for symptom, taken in matcher().decide(line, None) if symptom.id == id]
    assert found == values


@cases
def test_codes_are_known(typed: str, id: str) -> None:
    assert id in [symptom.id for symptom in matcher().lookup.by_code(typed)]


def test_a_code_that_nobody_knows() -> None:
    assert matcher().lookup.by_code("exit code -99") == ()
    assert matcher().lookup.by_code("?!") == ()


def test_an_address_that_torch_made_up_is_not_taken() -> None:
    said = "[W socket.cpp:764] [c10d] The client socket has failed to connect to {} (errno: 113 - No route)."
    for made_up in ("[51c0:0:f336:0:7ffd::]:27050", "186.85.0.0:27057"):
        assert [dict(taken) for _, taken in matcher().decide(said.format(made_up), None)] == [{}]
    ((_, taken),) = matcher().decide(said.format("[node1]:29500"), None)
    assert taken == {"host": "node1", "port": "29500"}


def test_words_lead_to_what_is_near() -> None:
    found = matcher().lookup.by_words("client socket timed out while trying to connect")
    assert found[0].id == "torch-connect-timeout"
    assert matcher().lookup.by_words("my cat sleeps on the keyboard") == ()
    assert matcher().lookup.by_words("hello world") == ()


def test_no_example_is_passed_over() -> None:
    """Every example is found among lines that differ only in their numbers."""
    lines = [example for symptom in bundled() for example in symptom.examples if symptom.patterns]
    text = (
        "\n".join(f"step {n} loss {n / 7:.3f}\n{line}" for n, line in enumerate(lines)).encode().split(b"\n")
    )
    possible = matcher().possible(map(sentence, text))
    found = [line.decode() for line in text if sentence(line) in possible and matcher().holds(line)]
    assert found == lines
