"""In which language a person reads."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum

UNTRANSLATED = "untranslated"
"""Stands in the place of a Chinese text that somebody else has yet to write."""


class Language(str, Enum):
    EN = "en"
    ZH = "zh"


def in_language(lang: Language, english: str, chinese: str) -> str:
    """English where there is no Chinese."""
    return chinese if lang is Language.ZH and chinese not in ("", UNTRANSLATED) else english


def language(environ: Mapping[str, str], encoding: str | None) -> Language:
    """That of messages, by the variables of POSIX; English where the stream cannot write Chinese."""
    locale = environ.get("LC_ALL") or environ.get("LC_MESSAGES") or environ.get("LANG") or ""
    return Language.ZH if locale.lower().startswith("zh") and _takes_chinese(encoding) else Language.EN


def _takes_chinese(encoding: str | None) -> bool:
    try:
        "检查（昇腾）".encode(encoding or "utf-8")
    except (UnicodeEncodeError, LookupError):
        return False
    return True
