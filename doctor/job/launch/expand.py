"""Words of a script -> the texts that a command would get, where the script itself settles them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import islice

from doctor.job.launch.shell_tokens import Part, Word

Value = str | tuple[str, ...] | None
"""A string, a list, or not known."""
Values = Mapping[str, Value]
LONGEST = 4000
MOST_WORDS = 1000


def fields(words: Sequence[Word], values: Values) -> list[str]:
    """A variable without quotes may be several words or none; what is not known stays as it is written."""
    found: list[str] = []
    for word in words:
        texts: list[str | None] = [None]
        for part in word.parts:
            pieces = _pieces(part, values, MOST_WORDS + 1 - len(texts))
            if len(texts) > MOST_WORDS or len(texts[-1] or "") > LONGEST:
                break
            if pieces:
                texts[-1] = (texts[-1] or "") + pieces[0]
                texts += pieces[1:]
        found += [text[:LONGEST] for text in texts if text is not None]
        if len(found) > MOST_WORDS:
            break
    return found[:MOST_WORDS]


def one(parts: Sequence[Part], values: Values) -> str | None:
    """The parts as one text; None where one of them is not known."""
    text = ""
    for part in parts:
        value = part.text if part.kind == "text" else _value(part, values)
        if not isinstance(value, str):
            return None
        text = (text + value)[:LONGEST]
    return text


def _pieces(part: Part, values: Values, most: int) -> list[str]:
    """Not more than `most`, and no more work than for these."""
    if part.kind == "text":
        return [part.text]
    value = _value(part, values)
    if isinstance(value, tuple):
        words = value if part.quoted else (word for text in value for word in text.split())
        return list(islice(words, most))
    if value is None:
        return [part.raw]
    return [value] if part.quoted else value.split()


def _value(part: Part, values: Values) -> Value:
    """A default counts only where the script itself decides whether it is needed."""
    if part.kind == "dynamic" or part.text not in values:
        return None
    value = values[part.text]
    if part.kind == "variable" and isinstance(value, tuple):
        value = value[0] if value else ""
    if value == "" and part.default is not None:
        return None if re.search(r"[$`'\"\\]", part.default) else part.default
    return value
