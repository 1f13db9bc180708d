"""Chinese manual pages say what the English ones say. Missing pages: see tests/unit/test_translated.py."""

import re
from pathlib import Path

from doctor.api import Check
from doctor.cli.pages import chinese_pages, page, translation
from doctor.judge.playbook import Recipe, load_remedies
from doctor.judge.registry import bundled, find_checks
from doctor.text.language import UNTRANSLATED, Language
from doctor.text.speech import speaking
from tests.support.each import each

CHECKS = {check.id: check for check in find_checks().checks}
TITLED = [each for each in load_remedies().recipes.values() if each.zh not in ("", UNTRANSLATED)]
CHINESE = re.compile(r"[\u4e00-\u9fff]")
COPIED = re.compile(
    r"""`[^`]+`                              # commands, variables, messages
      | "[^"]{7,}"                           # quoted messages
      | (?<![\w`])--[a-z-]+(?:=[a-z0-9]+)?   # options
      | [\w./*+-]*[0-9_/][\w./*:-]*          # numbers, codes, variables, paths""",
    re.ASCII | re.VERBOSE,
)
"""The parts that are the same in both languages."""

each_translated = each("check", [check for check in CHECKS.values() if translation(check)])


def copied(text: str) -> set[str]:
    found = COPIED.findall(" ".join(re.sub(r"[^ -~]", " ", text).split()))
    return {each.rstrip(".,:") for each in found}


def chinese(check: Check) -> str:
    with speaking(Language.ZH):
        return page(check)


@each_translated
def test_a_page_is_written_like_the_english_one(check: Check) -> None:
    title, *paragraphs = chinese(check).split("\n\n")
    assert re.fullmatch(r".{6,49}。", title)
    assert len(paragraphs) == check.doc.count("\n\n"), "the same paragraphs"
    assert all(CHINESE.search(paragraph) for paragraph in (title, *paragraphs))
    heads = [paragraph.partition("：")[0] for paragraph in paragraphs]
    assert heads[0] == "影响"
    assert "处理方法" in heads[1:]


@each_translated
def test_a_page_names_the_same_commands_variables_and_numbers(check: Check) -> None:
    assert copied(chinese(check)) == copied(check.doc)


@each("path", sorted((bundled("checks") / "zh").glob("*")))
def test_no_page_is_left_of_a_check_that_is_gone(path: Path) -> None:
    ids = {check.id for check in CHECKS.values() if Path(check.origin).stem == path.stem}
    assert set(chinese_pages(path.parent.parent / f"{path.stem}.py")) <= ids
    assert path.suffix == ".yaml"


@each("recipe", TITLED)
def test_a_title_of_a_remedy_in_chinese(recipe: Recipe) -> None:
    assert CHINESE.search(recipe.zh)
    assert not recipe.zh.endswith("。")
    assert copied(recipe.zh) == copied(recipe.title)
