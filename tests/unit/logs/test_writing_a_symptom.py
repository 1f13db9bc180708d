"""The examples in docs/writing-a-symptom.md work as written."""

import re
from pathlib import Path

import pytest

from doctor.errors import InputErrors
from doctor.judge.registry import find_checks
from doctor.logs.model import Form, Role
from doctor.logs.symptoms.entry import FIELDS
from doctor.logs.symptoms.load import load_symptoms
from doctor.logs.symptoms.match import Matcher
from tests.support.paths import ROOT

PAGE = (ROOT / "docs/writing-a-symptom.md").read_text()
((SHOWN),) = re.findall(r"^```yaml\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
CHECKS = [check.id for check in find_checks().checks]


def test_the_entry_works(tmp_path: Path) -> None:
    (tmp_path / "storage.yaml").write_text(SHOWN)
    matcher = Matcher(load_symptoms([tmp_path], CHECKS).symptoms)
    ((symptom, taken),) = matcher.decide(
        "storage client evicted by filer1 server: no answer for 90 s", Form.PLAIN
    )
    assert (symptom.id, dict(taken)) == ("storage-mount-lost", {"server": "filer1"})
    assert [each.id for each in matcher.lookup.by_code("STOR-17")] == ["storage-mount-lost"]


def test_the_mistakes_are_told_as_shown(tmp_path: Path) -> None:
    (block,) = re.findall(r"^```text\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    told = []
    for old, new in (
        ("role: root", "role: rooot"),
        ("[storage client evicted by, server]", "[ERROR, Invalid data]"),
    ):
        (tmp_path / "storage.yaml").write_text(SHOWN.replace(old, new))
        with pytest.raises(InputErrors) as caught:
            load_symptoms([tmp_path], CHECKS)
        told.append(str(caught.value.mistakes[0]).replace(str(tmp_path), "symptoms"))
    assert told == block.splitlines()


def test_everything_that_there_is_stands_in_the_page() -> None:
    for name in (*FIELDS, *(form.value for form in Form), *(role.value for role in Role)):
        assert f"`{name}`" in PAGE or f"{name}:" in SHOWN, name
