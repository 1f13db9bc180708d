"""What a mistake in JSON usually is, explained to the person who made it."""

import json
import re
from typing import NamedTuple

from doctor.job.ranktable.flaws import still_open
from doctor.text.textfile import shown


class Slip(NamedTuple):
    """What is wrong, what should be there, and the offset of the place to look at."""

    message: str
    expected: str
    offset: int


NOT_JSON = "is not JSON"
EMPTY = "is empty"
_BLANKS = " \t\r\n"
_WORD_BEFORE = re.compile(r"[^\s\"{}\[\],:]{0,80}\Z")
_WORD = re.compile(r"[^\s\"{}\[\],:']{1,80}")
_ADDRESS = re.compile(r"[0-9]{1,3}(?:\.[0-9*]{1,3}){3}")
_PYTHON = {"True": "true", "False": "false", "None": "null"}
_LOOKALIKES = {
    **dict.fromkeys("“”„‟«»＂", ("a typographic quotation mark", '"')),
    **dict.fromkeys("‘’‚‛＇", ("a typographic quotation mark", '"')),
    **dict.fromkeys("，、", ("a full-width comma", ",")),
    "：": ("a full-width colon", ":"),
    **dict.fromkeys("\u00a0\u3000\u200b\ufeff", ("an invisible character, not a blank", "a plain blank")),
    **dict.fromkeys("｛｝［］【】", ("a full-width bracket", "a plain bracket")),
}


def explain(text: str, error: json.JSONDecodeError) -> Slip:
    """`text` is what the decoder saw; only the first slip of a text can be identified for certain."""
    at, said = error.pos, error.msg
    if not text.strip(_BLANKS):
        return Slip(EMPTY, "a rank table", 0)
    char = text[at : at + 1]
    if said.startswith("Unterminated string"):
        return Slip("the file ends inside the text that begins here: it was cut off", 'a closing "', at)
    if said.startswith("Invalid control character"):
        return _broken_text(text, at)
    if said.startswith("Invalid") and "escape" in said:
        return Slip("a lone backslash", r"\\ for a backslash", text.rfind("\\", 0, at + 1))
    if said.startswith("Illegal trailing comma"):
        return Slip("a comma too many", "no comma before the bracket", at)
    if said.startswith("Extra data"):
        return _after_the_end(text, at)
    if not text[at:].strip(_BLANKS):
        return Slip("the file ends too early: it was cut off", f"{shown(still_open(text))} to close it", at)
    if char == "'":
        return Slip("single quotes: JSON allows only double quotes", "double quotes", at)
    if char in _LOOKALIKES:
        name, right = _LOOKALIKES[char]
        return Slip(name, right, at)
    if text.startswith("/*", at):
        return Slip("a comment begins that is never closed", "no comment", at)
    if at == len(text) - len(text.lstrip(_BLANKS)):
        return Slip(NOT_JSON, "a '{' at the beginning", at)
    if "property name" in said:
        return _no_key(text, at)
    if "':'" in said:
        return _no_colon(text, at)
    if "','" in said:
        return _no_comma(text, at)
    return _no_value(text, at)


def _broken_text(text: str, at: int) -> Slip:
    if text[at] not in "\r\n":
        return Slip("a control character inside a text", "no tabs or other control characters", at)
    return Slip("a text is not closed before its line ends", 'a closing "', text.rfind('"', 0, at))


def _after_the_end(text: str, at: int) -> Slip:
    if text[at] in "{[":
        return Slip("a second document begins after the end of the first", "one document", at)
    if text[at] in "}]":
        return Slip("a closing bracket too many", "nothing after the end", at)
    if text.lstrip(_BLANKS)[0] != "{":
        return Slip(NOT_JSON, "a '{' at the beginning", len(text) - len(text.lstrip(_BLANKS)))
    return Slip("something follows after the end", "nothing after the end", at)


def _no_key(text: str, at: int) -> Slip:
    if text[at] == ",":
        return Slip("a comma too many", "a key", at)
    if _WORD.match(text, at):
        return Slip("a key without quotes", "a key in double quotes", at)
    return Slip("a key is missing", "a key in double quotes", at)


def _no_colon(text: str, at: int) -> Slip:
    key = text[text.rfind('"', 0, text.rfind('"', 0, at)) : at]
    if ":" in key:
        return Slip("a quotation mark is missing: a key runs into its value", '\'"key": "value"\'', at)
    if text[at] in ",}]":
        return Slip("a key without a value", "':' and a value", at)
    return Slip("a ':' is missing after a key", "':'", at)


def _no_comma(text: str, at: int) -> Slip:
    char = text[at]
    if char in "}]":
        right = still_open(text[:at])[:1]
        return Slip(f"closed with {char!r} what began with another bracket", f"{right!r} or ','", at)
    if char == ":":
        return Slip("a key and its value are outside of braces", "'{' and '}' around them", at)
    before = _WORD_BEFORE.search(text, 0 if at < 80 else at - 80, at)
    start = before.start() if before else at
    if start < at and text[start:at].strip("0-") == "" and char.isdigit():
        return Slip("a number begins with 0", "a number without leading zeros, or quotes around it", start)
    if start < at:
        return Slip("a value without quotes", "double quotes around it", start)
    if text[at - 1] == '"' and char not in '"{[':
        return Slip("a quotation mark inside a text", 'a \\ before it, or no "', at)
    return Slip("a comma is missing before this", "','", at)


def _no_value(text: str, at: int) -> Slip:
    char = text[at]
    if char == ",":
        return Slip("a value is missing before this comma", "a value", at)
    if char in "}]":
        return Slip("a value is missing before this bracket", "a value", at)
    word = _WORD.match(text, at)
    if word and word[0] in _PYTHON:
        return Slip(f"{word[0]} is Python, not JSON", _PYTHON[word[0]], at)
    if word:
        what = "an address" if _ADDRESS.match(text, at) else "a value"
        return Slip(f"{what} without quotes", "double quotes around it", at)
    return Slip("a value is missing before this", "a value", at)
