"""The text of a manual page, in English or Chinese.

The English page of a check is its docstring; the Chinese one is next to its file, in zh/FILE.yaml. Both
titles of a remedy are in its file; the sentences that all pages share are here in both languages. A page
whose Chinese text is missing or outdated is shown in English, with a note.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from doctor.judge.playbook import Recipe, convert
from doctor.text.language import UNTRANSLATED, Language, in_language
from doctor.text.wrap import unwrap
from doctor.text.yamlfile import read_yaml

if TYPE_CHECKING:
    from doctor.api import Check

CHINESE = {
    "a fault": "故障",
    "a warning": "警告",
    "a remedy": "修复方法",
    "compares all hosts": "比较所有主机",
    "judges each host by itself": "逐台判断主机",
    "{}: {}; {}.": "{}：{}；{}。",
    "{}: {}.": "{}：{}。",
    "Only for jobs with {}.": "仅用于使用 {} 的作业。",
    " or ": " 或 ",
    "Often a consequence of: {}.": "往往是以下问题的后果：{}。",
    "Written in {}": "定义在 {}",
    "a message in logs": "日志中的消息",
    "can be the cause": "可能是根本原因",
    "normally follows from something earlier": "通常是更早的问题的后果",
    "confirms a cause, but is not an event of its own": "印证某个原因，本身不是事件",
    "names the guilty rank or host": "指出有问题的 rank 或主机",
    "advice, never evidence": "只是建议，不作为证据",
    "Codes": "代码",
    "In the logs": "日志中的写法",
    "Cause": "原因",
    "Possible causes, likeliest first": "原因（最可能的在前）",
    "What to type": "处理方法",
    "Prove it on the hosts": "在主机上验证",
    "Each check has a page: doctor explain {}": "每项检查都有说明：doctor explain {}",
    "Often the cause of: {}.": "往往导致：{}。",
    "Versions: {}.": "版本：{}。",
    "Known from: {}.": "来源：{}。",
    UNTRANSLATED: "untranslated：尚无中文译文，以下为英文。",
}
"""The sentences of pages besides the text of the check itself."""


class Chinese(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`english` is the fingerprint of the docstring that `page` translates, or "untranslated"; if it is
    empty, the translation counts as current.
    """

    page: str = ""
    english: str = ""


def say(english: str, lang: Language) -> str:
    return CHINESE[english] if lang is Language.ZH else english


def page(check: Check, lang: Language) -> str:
    """The page of a check. Its first line is the title; in Chinese each paragraph is one line."""
    if lang is Language.ZH and (chinese := translation(check)):
        return "\n\n".join(map(unwrap, chinese.split("\n\n")))
    return check.doc


def translation(check: Check) -> str:
    """The Chinese page if it translates the current docstring, else an empty text."""
    chinese = chinese_pages(Path(check.origin)).get(check.id, Chinese())
    return chinese.page.strip() if chinese.english in ("", fingerprint(check.doc)) else ""


def fingerprint(doc: str) -> str:
    """The fingerprint of an English page; line breaks do not matter."""
    return hashlib.sha256(" ".join(doc.split()).encode()).hexdigest()[:8]


def title(recipe: Recipe, lang: Language) -> str:
    return in_language(lang, recipe.title, recipe.zh)


@cache
def chinese_pages(origin: Path) -> Mapping[str, Chinese]:
    """The Chinese pages of a file of checks, by id."""
    path = origin.parent / "zh" / f"{origin.stem}.yaml"
    if not os.path.isfile(path):
        return {}
    pages: dict[str, Chinese] = convert(read_yaml(path), dict[str, Chinese], str(path))
    return pages
