"""Removes secrets from text before anything is parsed, stored or printed.

A secret is recognized by its name (`HF_TOKEN=…`, `--wandb-key …`, `"api_key": …`), by its shape (`nvapi-…`),
or by the program that takes it (`curl -u …`).
"""

import re
from collections.abc import Iterator, Mapping
from functools import lru_cache

from doctor.text import secretnames, secretshapes
from doctor.text.late import late
from doctor.text.secretnames import is_secret
from doctor.text.secretshapes import HIDDEN, VALUE, hide_places, hide_shapes

_EVERY = frozenset((*secretnames.HINTS, *secretshapes.HINTS))
_HINTS = tuple(hint for hint in _EVERY if not any(other in hint for other in _EVERY - {hint}))
"""The hints that do not contain another hint."""
_VALUE = late(VALUE)
_GAP = r"[ \t\u00a0\u3000]{0,4}"
_SIGN = rf"""(?P<quote>\\{{0,7}}["'])?{_GAP}(?P<sign>=>|->|%3[DdAa]|[=:＝：])(?!=){_GAP}"""
_IS = rf"""["']?{_GAP}[:=]{_GAP}"""
_NAMED = late(
    "|".join(
        (
            r"(?<!\S)(?P<option>--?[\w.-]+)[ \t]{1,4}(?=[^\s-])",
            rf"""(?<=["'])(?P<item>--?[\w.-]+)["'],{_GAP}(?=["'][^-])""",
            rf"""(?:[Nn]ame|[Kk]ey){_IS}["']?(?P<pair>[\w.-]+)["']?,{_GAP}["']?[Vv]alue{_IS}(?=\S)""",
            rf"<name>(?P<property>[\w.-]+)</name>{_GAP}<value>(?=[^<\s])",
            r"<(?P<tag>[\w.-]+)>(?=[^<\s])",
            r"(?<![\w.-])(?:set|setenv|ENV)[ \t]{1,4}(?P<set>[\w.:/-]*[_.:-][\w.:/-]*)[ \t]{1,4}(?=[^\s=-])",
            rf"(?<![\w.-])(?P<name>[\w.-]+){_SIGN}(?=\S)",
        )
    )
)
"""The text before a value: an option, alone or in a list of words; a name, also in a pair or a tag."""
_SIGN_OF_FORM = {"option": "", "item": "", "tag": ":", "pair": "=", "property": "=", "set": "="}
"""The sign between name and value to which each of these forms is equivalent."""
_NARROW = {"＝": "=", "：": ":", "=>": "=", "->": "=", "%3d": "=", "%3a": ":"}


LONG = 1000
"""Characters; such a line is rarely printed by several hosts alike."""


def redact(text: str) -> str:
    """The text with passwords, tokens and keys replaced. Only a private key spans more than one line."""
    if "PRIVATE KEY" in text.upper():
        text = hide_places(text)
    # The hosts of a cluster print mostly the same lines; long ones are not worth the memory.
    return "\n".join((_remembered if len(line) < LONG else _redacted)(line) for line in text.split("\n"))


def is_hinted(text: str) -> bool:
    """Whether the text may have a secret: else `redact` changes nothing."""
    folded = text.casefold()
    return any(hint in folded for hint in _HINTS)


def redact_values(variables: Mapping[str, str]) -> dict[str, str]:
    """The variables, with the values hidden that are secret by their name or shape."""
    return {n: HIDDEN if is_secret(n, "=", value[:80]) else redact(value) for n, value in variables.items()}


def _redacted(line: str) -> str:
    """Most lines have no hint of a secret and are not scanned: searching for words is many times faster than
    a case-insensitive pattern.
    """
    return line if not is_hinted(line) else "".join(_without_named(hide_shapes(hide_places(line))))


_remembered = lru_cache(4096)(_redacted)


def _without_named(line: str) -> Iterator[str]:
    done = 0
    for named in _NAMED.finditer(line):
        end = named.end()
        if named.start() < done or not _precedes_secret(named, line[end : end + 80].lstrip("\\")):
            continue
        value = _VALUE.match(line, end)
        if value:
            yield line[done:end] + HIDDEN
            done = value.end()
    yield line[done:]


def _precedes_secret(named: re.Match[str], value: str) -> bool:
    for kind, sign in _SIGN_OF_FORM.items():
        if name := named[kind]:
            return is_secret(name, sign, value)
    sign = named["sign"].lower()
    return is_secret(named["name"], _NARROW.get(sign, sign), value, quoted=bool(named["quote"]))
