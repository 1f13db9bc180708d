"""The Chinese README has the same parts as the English one."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable

import pytest

from tests.support.paths import ROOT

ENGLISH, CHINESE = ((ROOT / name).read_text() for name in ("README.md", "README.zh-CN.md"))
BLOCK = re.compile(r"^```.*?^```\n", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\(([^)]+)\)")
LANGUAGES = {"README.md", "README.zh-CN.md"}


def shape(page: str) -> list[str]:
    """The kind of each part: a heading of a level, rows of a table, items of a list, a paragraph."""
    return [_kind(part.splitlines()) for part in BLOCK.sub("", page).split("\n\n") if part.strip()]


def _kind(lines: list[str]) -> str:
    if heading := re.match("#+ ", lines[0]):
        return heading[0]
    if lines[0].startswith("|"):
        return f"table {[line.count('|') for line in lines]}"
    return f"list of {sum(line.startswith('- ') for line in lines)}" if lines[0].startswith("- ") else "text"


def code(page: str) -> list[str]:
    return BLOCK.findall(page)


def links(page: str) -> list[str]:
    return [link for link in LINK.findall(page) if link not in LANGUAGES]


def words_of_code(page: str) -> Counter[str]:
    return Counter(" ".join(word.split()) for word in re.findall(r"`([^`]+)`", BLOCK.sub("", page)))


@pytest.mark.parametrize("of", [shape, code, links, words_of_code], ids=lambda of: of.__name__)
def test_both_are_alike(of: Callable[[str], object]) -> None:
    assert of(ENGLISH)
    assert of(CHINESE) == of(ENGLISH)


def test_each_leads_to_the_other_in_its_first_lines() -> None:
    assert "(README.zh-CN.md)" in ENGLISH.splitlines()[2]
    assert "(README.md)" in CHINESE.splitlines()[2]


def test_a_part_that_is_missing_shows() -> None:
    lines = CHINESE.splitlines(keepends=True)
    cut = [n for n, line in enumerate(lines) if line.startswith(("## ", "- **", "|", "```sh"))]
    assert len(cut) > 30
    for number in cut:
        less = "".join(lines[:number] + lines[number + 1 :])
        assert (shape(less), code(less)) != (shape(CHINESE), code(CHINESE)), lines[number]
