"""Every manual page has its Chinese one, which says what the English one says now."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

from doctor.api import Check
from doctor.cli.pages import chinese_pages, page
from doctor.judge.playbook import Recipe, load_remedies
from doctor.judge.registry import bundled, find_checks
from doctor.text.language import Language
from tests.support.each import each

CHECKS = {check.id: check for check in find_checks().checks}
RECIPES = load_remedies().recipes
CHINESE = re.compile(r"[\u4e00-\u9fff]")
COPIED = re.compile(
    r"""`[^`]+`                              # commands, variables, messages
      | "[^"]{7,}"                           # quoted messages
      | (?<![\w`])--[a-z-]+(?:=[a-z0-9]+)?   # options
      | [\w./*+-]*[0-9_/][\w./*:-]*          # numbers, codes, variables, paths""",
    re.ASCII | re.VERBOSE,
)
"""What stands in both languages alike."""

each_check = each("check", CHECKS.values())


def fingerprint(doc: str) -> str:
    """Of an English page; where its lines break does not count."""
    return hashlib.sha256(" ".join(doc.split()).encode()).hexdigest()[:8]


def copied(text: str) -> set[str]:
    found = COPIED.findall(" ".join(re.sub(r"[^ -~]", " ", text).split()))
    return {each.rstrip(".,:") for each in found}


@each_check
def test_a_page_follows_its_docstring(check: Check) -> None:
    path = Path(check.origin)
    told = f"checks/zh/{path.stem}.yaml: {check.id}"
    chinese = chinese_pages(path).get(check.id)
    assert chinese, f"{told}: there is no Chinese page"
    now = fingerprint(check.doc)
    assert chinese.english == now, (
        f'{told}: the docstring changed: say the same in Chinese, then set english: "{now}"'
    )


@each_check
def test_a_page_is_written_like_the_english_one(check: Check) -> None:
    title, *paragraphs = page(check, Language.ZH).split("\n\n")
    assert re.fullmatch(r".{6,49}。", title)
    assert len(paragraphs) == check.doc.count("\n\n"), "the same paragraphs"
    assert all(CHINESE.search(paragraph) for paragraph in (title, *paragraphs))
    heads = [paragraph.partition("：")[0] for paragraph in paragraphs]
    assert heads[0] == "影响"
    assert "处理方法" in heads[1:]


@each_check
def test_a_page_names_the_same_commands_variables_and_numbers(check: Check) -> None:
    assert copied(page(check, Language.ZH)) == copied(check.doc)


@each("path", sorted((bundled("checks") / "zh").glob("*")))
def test_no_page_is_left_of_a_check_that_is_gone(path: Path) -> None:
    ids = {check.id for check in CHECKS.values() if Path(check.origin).stem == path.stem}
    assert set(chinese_pages(path.parent.parent / f"{path.stem}.py")) == ids
    assert path.suffix == ".yaml"


@each("recipe", RECIPES.values())
def test_a_remedy_has_its_title_in_chinese(recipe: Recipe) -> None:
    assert CHINESE.search(recipe.zh)
    assert not recipe.zh.endswith("。")
    assert copied(recipe.zh) == copied(recipe.title)
