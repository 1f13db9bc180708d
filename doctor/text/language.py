"""In which language a person reads."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum


class Language(str, Enum):
    EN = "en"
    ZH = "zh"


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
