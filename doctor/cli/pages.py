"""The text of a manual page, in English or Chinese.

The English page of a check is its docstring; the Chinese one is next to its file, in zh/FILE.yaml. Both
titles of a remedy are in its file; the sentences that all pages share are in the catalogue. A page
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

from doctor.text.language import Language
from doctor.text.speech import spoken
from doctor.text.wrap import unwrap
from doctor.text.yamlfile import convert, read_yaml

if TYPE_CHECKING:
    from doctor.api import Check


class Chinese(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`english` is the fingerprint of the docstring that `page` translates, or "untranslated"; if it is
    empty, the translation counts as current.
    """

    page: str = ""
    english: str = ""


def page(check: Check) -> str:
    """The page of a check. Its first line is the title; in Chinese each paragraph but code is one line."""
    if spoken() is Language.ZH and (chinese := translation(check)):
        return "\n\n".join(part if part.startswith(" ") else unwrap(part) for part in chinese.split("\n\n"))
    return check.doc


def translation(check: Check) -> str:
    """The Chinese page if it translates the current docstring, else an empty text."""
    chinese = chinese_pages(Path(check.origin)).get(check.id, Chinese())
    return chinese.page.strip() if chinese.english in ("", fingerprint(check.doc)) else ""


def fingerprint(doc: str) -> str:
    """The fingerprint of an English page; line breaks do not matter."""
    return hashlib.sha256(" ".join(doc.split()).encode()).hexdigest()[:8]


@cache
def chinese_pages(origin: Path) -> Mapping[str, Chinese]:
    """The Chinese pages of a file of checks, by id."""
    path = origin.parent / "zh" / f"{origin.stem}.yaml"
    if not os.path.isfile(path):
        return {}
    pages: dict[str, Chinese] = convert(read_yaml(path), dict[str, Chinese], str(path))
    return pages
