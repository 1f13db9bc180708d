"""Catalogues of translations: gettext's .po files, whose msgid is the English template of a sentence.

`{name}` is a hole, `{n}` (or `{n2}`) a hole for a number or a range, `{list}` one for several of them,
`{word}` one for a single word, `{bit}` one for anything without blanks, `{ip}` one for an IP address,
`{setting}` one for a variable or an option, `{nodes}` one for folded names of hosts, `{interface}` one for
the name of an interface, `{who}`, `{host}`, `{hosts}` and `{ranks}` ones that hold no clause, `{raw}` one for
a text that is not translated (each also with a number: `{raw2}`), `{name}`, `{file}`, `{option}` or
`{command}` one for what is typed or named, which is not translated either (`{names}` for several: "a, b and
c"), and `{s|}` or `{is|are}` a choice of English words that the translation does not need.
"""

import re
from collections.abc import Iterator, Mapping
from functools import cached_property
from pathlib import Path

QUOTED = "raw"
NAMED = re.compile(r"(?:name|file|option|command|node)s?\d*")
HOLE = re.compile(r"\{([^{}]*)\}")
_NUMBER = re.compile(r"n\d*")
_ONE = r"[-+]?[0-9](?:[0-9.,-]*[0-9])?"
_KINDS = {
    "": ".+?",
    "list": f"{_ONE}(?:, {_ONE})*",
    "word": r"[^\s,;:()]+",
    "bit": r"\S+",
    "ip": r"[0-9A-Fa-f]*[.:0-9][0-9A-Fa-f.:]*",
    "setting": r"-{0,2}\w*[A-Z0-9_-][\w.-]*",
    "nodes": r"[^\s;:()]+",
    "interface": r"(?:eth|ib|bond|br|hsn|lo|docker|data)-?\d[\w.-]*|en[opsx]\d[\w.-]*",
    "who": r"(?:(?![:;] ).)+?",
    **dict.fromkeys(("host", "hosts", "ranks"), r"(?:(?![:;] | \().)+?"),
}
_WEAK_KINDS = {
    **_KINDS,
    **dict.fromkeys(("who", "ranks", ""), _KINDS["ranks"]),
    **dict.fromkeys(("host", "hosts"), r"(?:(?![:;,] | \().)+?"),
}
WEAK = 4
"""A template with at most this many letters outside of its holes matches much that is not meant: each of its
holes holds one phrase.
"""
SHORT = 12
"""With at most this many letters, what is in its holes must be translated, or be a name."""
TINY = 7
"""With at most this many, that goes for quotes too."""
_LISTED = re.compile(r"[a-z]: \{(\w+)\}\.?$")
_STRING = re.compile(r'"((?:[^"\\]|\\.)*)"')
_ESCAPE = re.compile(r"\\(.)")
_WORD = re.compile(r"[A-Za-z][A-Za-z']*")


class Template:
    """An English sentence with holes, and its translation."""

    def __init__(self, english: str, chinese: str) -> None:
        self.english, self.chinese = english, chinese
        self.fixed = sum(map(str.isalpha, HOLE.sub("", english)))
        self.is_weak, self.is_tiny, self.is_short = (self.fixed <= most for most in (WEAK, TINY, SHORT))

    @cached_property
    def listed(self) -> str:
        """The hole after a colon at the end: it may hold several clauses."""
        found = _LISTED.search(self.english)
        return found[1] if found else ""

    @cached_property
    def pattern(self) -> re.Pattern[str]:
        """Matches the sentence; its first letter may be large or small."""
        parts = HOLE.split(self.english)
        seen: set[str] = set()
        made = []
        for at, part in enumerate(parts):
            made.append(_hole(part, seen, weak=self.is_weak) if at % 2 else re.escape(part))
        first = self.english[0]
        if first.isalpha():
            made[0] = f"[{first.lower()}{first.upper()}]{re.escape(parts[0][1:])}"
        return re.compile("".join(made), re.DOTALL)

    def words(self) -> list[str]:
        """The whole words that each sentence of the template has; none of them touches a hole."""
        spaced = HOLE.sub("\x00", self.english)
        found = re.finditer(r"(?<![\x00A-Za-z0-9'])[A-Za-z][A-Za-z']*(?![\x00A-Za-z0-9'])", spaced)
        return [each[0].lower() for each in found]


def words(text: str) -> set[str]:
    return {word.lower() for word in _WORD.findall(text)}


def _hole(name: str, seen: set[str], *, weak: bool) -> str:
    if "|" in name:
        return f"(?:{'|'.join(map(re.escape, name.split('|')))})"
    if name in seen:
        return f"(?P={name})"
    seen.add(name)
    kinds = _WEAK_KINDS if weak else _KINDS
    kind = _ONE if _NUMBER.fullmatch(name) else kinds.get(name.rstrip("0123456789"), kinds[""])
    return f"(?P<{name}>{kind})"


def read_catalogue(folder: Path) -> Mapping[str, str]:
    """The translations in all files of a folder, by msgid; without those that are still empty."""
    found: dict[str, str] = {}
    for path in sorted(folder.glob("*.po")):
        for english, chinese in read_po(path.read_text(encoding="utf-8")):
            if english and chinese:
                found.setdefault(english, chinese)
    return found


def read_po(text: str) -> Iterator[tuple[str, str]]:
    """The pairs of msgid and msgstr."""
    english: list[str] = []
    chinese: list[str] = []
    now: list[str] | None = None
    for line in text.splitlines():
        if line.startswith("msgid"):
            if english or chinese:
                yield "".join(english), "".join(chinese)
            english, chinese = [], []
            now = english
        elif line.startswith("msgstr"):
            now = chinese
        elif not line.startswith('"'):
            now = None
        if now is not None and (string := _STRING.search(line)):
            now.append(_ESCAPE.sub(lambda each: "\n" if each[1] == "n" else each[1], string[1]))
    if english or chinese:
        yield "".join(english), "".join(chinese)
