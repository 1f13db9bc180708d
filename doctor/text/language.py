"""The language of a page."""

from collections.abc import Mapping, Sequence
from enum import Enum

from doctor.text.terminal import takes

UNTRANSLATED = "untranslated"
"""Marks a Chinese text that is yet to be written."""


class Language(str, Enum):
    EN = "en"
    ZH = "zh"


def in_language(lang: Language, english: str, chinese: str) -> str:
    """The Chinese text if it is wanted and exists, else the English one."""
    return chinese if lang is Language.ZH and chinese not in ("", UNTRANSLATED) else english


def language(environ: Mapping[str, str], encoding: str | None) -> Language:
    """The language of messages by the POSIX variables; English if the stream cannot encode Chinese."""
    locale = environ.get("LC_ALL") or environ.get("LC_MESSAGES") or environ.get("LANG") or ""
    return Language.ZH if locale.lower().startswith("zh") and takes("检查（昇腾）", encoding) else Language.EN


def wished(arguments: Sequence[str]) -> Language | None:
    """The language that --lang names on a command line; a wrong one is refused where options are read."""
    for at, word in enumerate(arguments):
        name, equals, value = word.partition("=")
        if name == "--lang":
            said = value if equals else "".join(arguments[at + 1 : at + 2])
            return Language(said) if said in tuple(Language) else None
    return None
