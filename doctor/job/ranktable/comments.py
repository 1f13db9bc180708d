"""What people write into JSON files although JSON does not have it, and what can be read in spite of it."""

from __future__ import annotations

import re
from collections.abc import Iterator

_STRING = r'"[^"\\\n]*(?:\\.[^"\\\n]*)*"?'
"""One that its line does not close ends with the line, so that one lost quotation mark does not turn all that
follows inside out."""

_STRING_OR_COMMENT = re.compile(_STRING + r"|//[^\n]*|\#[^\n]*|/\*")
_STRING_OR_COMMA = re.compile(_STRING + r"|,(?=[ \t\r\n]*[}\]])")
_CHARACTER = re.compile(r"[^\n]")


def without_comments(text: str) -> tuple[str, list[int]]:
    """The text with blanks in place of comments, so that offsets stay; and where the comments began.

    A block comment that nobody closed stays.
    """
    pieces: list[str] = []
    starts: list[int] = []
    done = 0
    for start, end in _comments(text):
        pieces += text[done:start], _CHARACTER.sub(" ", text[start:end])
        starts.append(start)
        done = end
    return "".join([*pieces, text[done:]]), starts


def without_trailing_commas(text: str) -> tuple[str, list[int]]:
    """The same for commas before a closing bracket. The text holds no comments any more."""
    starts = [match.start() for match in _STRING_OR_COMMA.finditer(text) if match[0] == ","]
    pieces = [text[start + 1 : end] for start, end in zip([-1, *starts], [*starts, len(text)], strict=True)]
    return " ".join(pieces), starts


def plain_json(text: str) -> str:
    """The text without either, all else at its place."""
    return without_trailing_commas(without_comments(text)[0])[0]


def _comments(text: str) -> Iterator[tuple[int, int]]:
    done = 0
    while match := _STRING_OR_COMMENT.search(text, done):
        done = match.end()
        if match[0][0] == '"':
            continue
        if match[0] == "/*":
            closed = text.find("*/", done)
            if closed < 0:
                return
            done = closed + 2
        yield match.start(), done
