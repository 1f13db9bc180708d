"""Secrets out of text, before anything is parsed, stored or printed."""

from __future__ import annotations

import re

_WORDS = "token|passwd|password|secret|api[_-]?key|access[_-]?key|private[_-]?key|credential"
_NAME = rf"(?:[A-Za-z0-9_.-]*(?:{_WORDS})[A-Za-z0-9_]*)"
_SECRETS = re.compile(
    rf"""
    (?P<key>{_NAME}["']?\s*(?:=|:\s|\s(?=[^-\s])))["']?(?P<value>[^\s"'&;,]+)
    | (?P<scheme>(?:Bearer|Basic)\s+)(?P<blob>[A-Za-z0-9+/=._~-]{{8,}})
    | (?P<user>://[^\s:/@]+:)(?P<pass>[^\s@/]+)(?=@)
    | (?P<known>\b(?:hf_|ghp_|gho_|glpat-|sk-|xox[abp]-|AKIA)[A-Za-z0-9_-]{{8,}})
    """,
    re.IGNORECASE | re.VERBOSE,
)
_HINT = re.compile(
    r"token|passw|secret|key|credential|bearer|basic|://|hf_|gh[po]_|glpat|sk-|xox|AKIA", re.IGNORECASE
)
HIDDEN = "[hidden]"


def redact(text: str) -> str:
    """The same text with passwords, tokens and keys replaced; most text has none and passes unscanned."""
    if not _HINT.search(text):
        return text
    return _SECRETS.sub(_hide, text)


def _hide(match: re.Match[str]) -> str:
    kept = match["key"] or match["scheme"] or match["user"] or ""
    return kept + HIDDEN
