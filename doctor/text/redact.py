"""Secrets out of text, before anything is parsed, stored or printed.

A secret is known by the name it is given (`HF_TOKEN=…`, `--password …`, `"api_key": …`) or by its own shape
(AWS, GitHub, Hugging Face, JSON web tokens, private keys). Names that merely look alike (`tokenizer`,
`max_tokens`) are left alone. Every pattern is bounded, so that hostile text costs linear time.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

HIDDEN = "[hidden]"

_WORD = (
    r"(?:token|passw(?:or)?d|passphrase|secret|credential|(?:api|access|private|account|encryption)[_-]?key)"
    r"(?:s(?<!tokens))?(?:[_-](?:id|key|value|access[_-]?key))?\d{0,3}"
)
_VALUE = r"""(?:"(?:[^"\\\n]|\\.){0,4096}"|'[^'\n]{0,4096}'|["']?[^\s"'&]+)"""
_SECRETS = re.compile(
    rf"""
    (?P<pem>-----BEGIN[ ][A-Z ]{{0,40}}PRIVATE[ ]KEY-----)[\s\S]*?(?=-----END|\Z)
    | (?P<scheme>\bauthorization["']?[ \t]{{0,4}}[:=][ \t]{{0,4}}["']?(?:\w{{1,16}}[ ])?)[^\s"']+
    | (?P<flag>(?<!\S)--?(?:[\w-]{{0,64}}[_-])?{_WORD}[ \t]{{1,4}})(?!-){_VALUE}
    | (?P<key>{_WORD}["']?[ \t]{{0,4}}[=:][ \t]{{0,4}}){_VALUE}
    | (?P<user>://[^\s:/@]{{0,256}}:)[^\s/]{{1,1024}}(?=@)
    | (?P<bearer>\bbearer[ ])[A-Za-z0-9+/=._~-]{{16,}}
    | \b(?:hf_[A-Za-z0-9]{{16,}}|gh[pousr]_[A-Za-z0-9]{{16,}}|github_pat_\w{{16,}}|glpat-[\w-]{{16,}}
        |sk-[\w-]{{20,}}|xox[abeprs]-[\w-]{{10,}}|(?-i:AKIA|ASIA)[A-Z0-9]{{12,}}|eyJ[\w-]{{10,}}\.[\w.-]{{10,}})
    """,
    re.IGNORECASE | re.VERBOSE,
)
_SECRET_NAME = re.compile(rf"{_WORD}\Z", re.IGNORECASE)
_HINTS = (
    *("token", "passw", "passph", "secret", "credential", "key", "authorization", "bearer", "://", "hf_"),
    *("ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat", "glpat", "sk-", "xox", "akia", "asia", "eyj"),
)


def redact(text: str) -> str:
    """The same text with passwords, tokens and keys replaced; most lines have none and pass unscanned.

    Only a private key spans more than one line.
    """
    if not _suspicious(text):
        return text
    if "PRIVATE KEY" in text.upper():
        return _SECRETS.sub(_hide, text)
    return "\n".join(_SECRETS.sub(_hide, line) if _suspicious(line) else line for line in text.split("\n"))


def _suspicious(text: str) -> bool:
    """Searching for plain words is many times faster than a regular expression that ignores case."""
    folded = text.casefold()
    return any(hint in folded for hint in _HINTS)


def redact_values(variables: Mapping[str, str]) -> dict[str, str]:
    """The same variables; the values of those whose name or value says so are hidden."""
    return {n: HIDDEN if _SECRET_NAME.search(n) else redact(value) for n, value in variables.items()}


def _hide(match: re.Match[str]) -> str:
    return (match[match.lastgroup] if match.lastgroup else "") + HIDDEN
