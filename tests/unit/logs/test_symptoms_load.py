"""Files of symptoms: each mistake in one is reported with its place."""

from importlib.metadata import EntryPoint
from pathlib import Path
from types import ModuleType

import pytest

from doctor.errors import InputErrors
from doctor.logs.model import Form, Role
from doctor.logs.symptoms import load
from doctor.logs.symptoms.load import load_symptoms
from tests.support.cases import cases, from_cases

GOOD = from_cases(__file__, "GOOD", str)


def mistakes(folder: Path, text: str) -> list[str]:
    (folder / "mine.yaml").write_text(text)
    with pytest.raises(InputErrors) as caught:
        load_symptoms([folder], checks=["kernel-log", "port-unreachable"])
    own = str(folder / "mine.yaml")
    # Names of checks in the bundled files are unknown here, because only two ids exist.
    return [str(each).replace(own, "mine.yaml") for each in caught.value.mistakes if each.file == own]


def test_a_folder_adds_symptoms(tmp_path: Path) -> None:
    (tmp_path / "mine.yaml").write_text(GOOD)
    (symptom,) = [each for each in load_symptoms([tmp_path]).symptoms if each.id == "my-fault"]
    assert symptom.family == "mine"
    assert symptom.role is Role.ROOT
    assert symptom.patterns == (("widget", "is broken"), ("the frobnicator stopped",))
    assert symptom.forms == {Form.PLAIN, Form.PYTHON}
    assert symptom.origin == str(tmp_path / "mine.yaml")


@cases
def test_a_mistake_has_its_place(tmp_path: Path, old: str, new: str, line: int, words: str) -> None:
    assert old in GOOD
    told = mistakes(tmp_path, GOOD.replace(old, new, 1))
    assert any(each.startswith(f"mine.yaml:{line}: ") and words in each for each in told), told


NUMBER = "my-number:\n  title: a widget is worn\n  role: root\n  number: 907001\n"


def test_a_number_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "mine.yaml").write_text(NUMBER)
    (symptom,) = [each for each in load_symptoms([tmp_path]).symptoms if each.id == "my-number"]
    runtime = ("error code is 907001", "ErrCode=907001", "ret: 907001", "runtime result = 907001")
    assert symptom.patterns == tuple((text,) for text in runtime)
    assert symptom.codes == ("907001",)
    (tmp_path / "mine.yaml").write_text(f"{NUMBER}  spellings: all\n  codes: [WORN]\n")
    (symptom,) = [each for each in load_symptoms([tmp_path]).symptoms if each.id == "my-number"]
    assert symptom.patterns[:4] == tuple((text,) for text in runtime)
    assert (len(symptom.patterns), symptom.patterns[6]) == (16, ("retcode:907001",))
    assert symptom.codes == ("907001", "WORN")


@cases
def test_a_number_that_is_none(tmp_path: Path, line: str, words: str) -> None:
    assert any(words in each for each in mistakes(tmp_path, NUMBER.replace("number: 907001", line)))


def test_an_entry_without_anything_that_leads_to_it(tmp_path: Path) -> None:
    (told,) = mistakes(tmp_path, "my-fault:\n  title: a title\n  role: root\n")
    assert "neither a pattern" in told


@pytest.mark.parametrize(
    "text",
    [
        "a: &x [1]\nb: *x\n",
        "a: !!python/object/apply:os.system ['true']\n",
        "- just\n- a list\n",
        "text alone\n",
        "my-fault: text\n",
        "my-fault:\n  any: {a: b}\n  title: t\n  role: root\n",
        f"my-fault:\n  title: {'x' * 5000}\n  role: root\n  any: [a longer text here]\n",
        f"my-fault:\n  title: t\n  role: root\n  causes: [{', '.join(f'cause {n}' for n in range(500))}]\n",
        "[" * 100 + "]" * 100,
        "\x00",
    ],
)
def test_hostile_files_are_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "mine.yaml").write_text(text)
    with pytest.raises(InputErrors):
        load_symptoms([tmp_path])


def test_a_folder_that_is_none(tmp_path: Path) -> None:
    with pytest.raises(InputErrors, match="it is not a folder"):
        load_symptoms([tmp_path / "none"])
    with pytest.raises(InputErrors, match="no file of symptoms"):
        load_symptoms([tmp_path])


def test_a_folder_whose_files_hold_nothing(tmp_path: Path) -> None:
    (tmp_path / "mine.yml").write_text("# to be written\n")
    with pytest.raises(InputErrors, match="there is no symptom in its files"):
        load_symptoms([tmp_path])


def test_two_folders_with_one_id(tmp_path: Path) -> None:
    for name in "ab":
        (tmp_path / name).mkdir()
        (tmp_path / name / "mine.yaml").write_text(GOOD)
    with pytest.raises(InputErrors, match="my-fault exists already, in"):
        load_symptoms([tmp_path / "a", tmp_path / "b"])


def _entry_point(monkeypatch: pytest.MonkeyPatch, loaded: object) -> None:
    point = EntryPoint("mine", "nowhere", load.ENTRY_POINTS)
    monkeypatch.setattr(load, "entry_points", lambda group: [point] if group == load.ENTRY_POINTS else [])
    monkeypatch.setattr(EntryPoint, "load", lambda _: loaded)


def test_an_entry_point_adds_symptoms(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "mine.yaml").write_text(GOOD)
    package = ModuleType("mine")
    package.__path__ = [str(tmp_path)]
    for loaded in (package, tmp_path, str(tmp_path)):
        _entry_point(monkeypatch, loaded)
        found = load_symptoms()
        assert not found.broken
        assert "my-fault" in {each.id for each in found.symptoms}


def test_a_broken_entry_point_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "mine.yaml").write_text(GOOD.replace("role: root", "role: rooot"))
    _entry_point(monkeypatch, tmp_path)
    found = load_symptoms()
    (broken,) = found.broken
    assert broken.origin == "entry point mine"
    assert "no role is called 'rooot'" in broken.reason
    assert "my-fault" not in {each.id for each in found.symptoms}


def test_a_check_that_resembles_none_has_no_suggestion(tmp_path: Path) -> None:
    (told,) = mistakes(tmp_path, GOOD.replace("checks: [kernel-log]", "checks: [zzzzzz]"))
    assert told.endswith("no check is called 'zzzzzz'")
