"""Texts without a Chinese translation, or with that of an older English text: only this test asks for them,
and lists them.
"""

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import pytest

from doctor.api import Check
from doctor.cli.pages import Chinese, chinese_pages, fingerprint
from doctor.judge.playbook import Recipe, load_remedies
from doctor.judge.registry import find_checks
from doctor.logs.model import Role, Symptom
from doctor.logs.symptoms.load import load_symptoms
from doctor.text.language import UNTRANSLATED
from tests.support.cases import cases, from_cases

FAMILIES = ("torch", "nccl", "slurm", "mpi", "kernel")
"""Families of symptoms; those of vendors follow the vendors' own Chinese texts."""
TO_DO = "or write `{}: untranslated`, and somebody else will"


def marked_and_forgotten(
    checks: Iterable[Check], recipes: Mapping[str, Recipe], symptoms: Iterable[Symptom]
) -> tuple[list[str], list[str]]:
    """Texts that are marked as untranslated, by their place; and other texts without a translation."""
    marked, forgotten = list[str](), list[str]()
    for where, said, why in (*_pages(checks), *_titles(recipes), *_symptoms(symptoms)):
        if said == UNTRANSLATED:
            marked.append(where)
        elif why:
            forgotten.append(f"{where}: {why}")
    return marked, forgotten


def _pages(checks: Iterable[Check]) -> Iterator[tuple[str, str, str]]:
    for check in checks:
        path, now = Path(check.origin), fingerprint(check.doc)
        chinese = chinese_pages(path).get(check.id, Chinese())
        why = "there is no Chinese page: write one" if not chinese.page else "the docstring changed"
        told = f'{why}, with `english: "{now}"`, {TO_DO.format("english")}'
        missing = not chinese.page or chinese.english != now
        yield f"checks/zh/{path.stem}.yaml: {check.id}", chinese.english, told if missing else ""


def _titles(recipes: Mapping[str, Recipe]) -> Iterator[tuple[str, str, str]]:
    for name, recipe in recipes.items():
        told = f"it has no title in Chinese: write `zh`, {TO_DO.format('zh')}"
        yield f"playbooks/remedies: {name}", recipe.zh, "" if recipe.zh else told


def _symptoms(symptoms: Iterable[Symptom]) -> Iterator[tuple[str, str, str]]:
    for symptom in symptoms:
        needed = symptom.family in FAMILIES and symptom.role is not Role.ADVICE and not symptom.zh
        told = f"it has no title in Chinese: write `zh`, {TO_DO.format('zh')}"
        yield f"playbooks/symptoms: {symptom.id}", symptom.zh, told if needed else ""


def test_all_is_translated_or_said_to_be_untranslated() -> None:
    checks = find_checks().checks
    symptoms = load_symptoms(checks=[check.id for check in checks], trust=False).symptoms
    marked, forgotten = marked_and_forgotten(checks, load_remedies().recipes, symptoms)
    assert not forgotten, "\n" + "\n".join(forgotten)
    if marked:
        pytest.skip(f"to be translated into Chinese: {', '.join(marked)}")


DOOR = from_cases(__file__, "DOOR", str)


@cases
def test_each_is_listed_once(written: str | None, marked: int, forgotten: int, tmp_path: Path) -> None:
    (tmp_path / "door.py").write_text(DOOR)
    (door,) = (check for check in find_checks((tmp_path,)).checks if check.id == "door-open")
    if written is not None:
        (tmp_path / "zh").mkdir()
        (tmp_path / "zh/door.yaml").write_text(written.format(now=fingerprint(door.doc)))
    found = marked_and_forgotten([door], {}, ())
    assert tuple(map(len, found)) == (marked, forgotten), found
    if forgotten:
        assert f'`english: "{fingerprint(door.doc)}"`, or write `english: untranslated`' in found[1][0]


def test_titles_are_listed_too() -> None:
    recipes = {name: Recipe("Close it", ("true",), zh) for name, zh in (("a-b", ""), ("c-d", UNTRANSLATED))}
    symptoms = [
        Symptom(id, "it fell", "nccl", Role.ROOT, (), zh=zh)
        for id, zh in (("e-f", ""), ("g-h", UNTRANSLATED))
    ]
    marked, forgotten = marked_and_forgotten((), recipes, symptoms)
    assert marked == ["playbooks/remedies: c-d", "playbooks/symptoms: g-h"]
    assert [each.partition(": it has")[0] for each in forgotten] == [
        "playbooks/remedies: a-b",
        "playbooks/symptoms: e-f",
    ]
