"""The text of a file -> the JSON value in it, despite comments and stray commas."""

import json
import re
from collections.abc import Iterator
from itertools import islice
from typing import NamedTuple

from doctor.job.ranktable.flaws import ENOUGH, TextPlaces, UnplacedFlaw, constants, repeated_keys, said
from doctor.text.hostprogram import sections
from doctor.text.textfile import shown

_STRING = r'"[^"\\\n]*(?:\\.[^"\\\n]*)*"?'
"""A string that its line does not close ends with the line, so that one lost quotation mark does not turn
everything after it inside out."""

_COMMENT = re.compile(rf"(?P<stays>{_STRING}|/\*(?!(?s:.*?)\*/)(?s:.*))|//[^\n]*|\#[^\n]*|/\*(?s:.*?)\*/")
"""A block comment that is not closed stays, with everything after it."""
_COMMA = re.compile(rf"(?P<stays>{_STRING})|,(?=[ \t\r\n]*[}}\]])")
_CHARACTER = re.compile(r"[^\n]")


def plain_json(text: str) -> str:
    """The text with blanks in place of comments and trailing commas."""
    return _blank_out(_COMMA, _blank_out(_COMMENT, text)[0])[0]


def _blank_out(pattern: re.Pattern[str], text: str) -> tuple[str, list[int]]:
    """The text with each match replaced by blanks, so that offsets stay, and the offsets of the matches."""
    starts: list[int] = []

    def blank(match: re.Match[str]) -> str:
        if match["stays"]:
            return match[0]
        starts.append(match.start())
        return _CHARACTER.sub(" ", match[0])

    return pattern.sub(blank, text), starts


LONGEST_INTEGER = 15
"""The most digits. No field has more than twelve, and Python refuses to read thousands of them."""

_MOST_LINES = 8
_EMPTY, _NOT_JSON = "is empty", "is not JSON"
_EXPECTED = sections(__file__, "decode.txt")["expected"]
"""What should be at the place, by a part of the message of Python's decoder."""


class DecodedTable(NamedTuple):
    """`value` is None if the text is not JSON (or is `null`). `places` are those of the text with blanks in
    place of comments and trailing commas."""

    value: object
    places: TextPlaces
    flaws: list[UnplacedFlaw]


def decode(text: str) -> DecodedTable:
    plain, comments = _blank_out(_COMMENT, text)
    plain, commas = _blank_out(_COMMA, plain)
    places = TextPlaces(plain)
    flaws = [*_comments(TextPlaces(text), comments), *_commas(TextPlaces(text), commas)]
    # Errors that Python's decoder accepts.
    odd: list[str] = []
    doubled: list[object] = []

    def members(pairs: list[tuple[str, object]]) -> dict[str, object]:
        made = dict(pairs)
        if len(made) != len(pairs):
            doubled.append(made)
        return made

    decoder = json.JSONDecoder(object_pairs_hook=members, parse_int=_integer, parse_constant=odd.append)
    try:
        value = decoder.decode(plain)
    except json.JSONDecodeError as error:
        offset, message, expected = _broken(plain, error)
        if message in (_EMPTY, _NOT_JSON):
            flaws = []
        actual = TextPlaces(text).around(offset) if message != _EMPTY else "nothing"
        flaws.append(UnplacedFlaw(offset, None, message, expected, actual))
        return DecodedTable(None, places, flaws)
    except RecursionError:
        flaws.append(UnplacedFlaw(places.first, None, "is nested too deeply", "a rank table"))
        return DecodedTable(None, places, flaws)
    if odd:
        message, expected = "is not a JSON value: only Python writes it", "a text or a number"
        flaws += [UnplacedFlaw(at, None, message, expected) for at in islice(constants(plain), ENOUGH)]
        return DecodedTable(None, places, flaws)
    if doubled:
        flaws += _repeated_keys(places)
    return DecodedTable(value, places, flaws)


def _broken(text: str, error: json.JSONDecodeError) -> tuple[int, str, str]:
    """Where a text is no JSON, what is wrong, and what should be there: only its first mistake is certain."""
    at, first = error.pos, len(text) - len(text.lstrip())
    if first == len(text):
        return 0, _EMPTY, "a rank table"
    if text[first] != "{" and (at == first or error.msg.startswith("Extra data")):
        return first, _NOT_JSON, "a '{' at the beginning"
    if not text[at:].strip() or error.msg.startswith("Unterminated string"):
        return at, "the file ends too early: it was cut off", "the rest of it"
    expected = next((right for said, right in _EXPECTED.items() if said in error.msg), "JSON")
    return at, "is not JSON from here on", expected


def _integer(digits: str) -> int | float:
    return int(digits) if len(digits) <= LONGEST_INTEGER else float("inf")


def _comments(places: TextPlaces, starts: list[int]) -> Iterator[UnplacedFlaw]:
    if not starts:
        return
    lines = list(dict.fromkeys(str(places.spot(start).line) for start in starts[:ENOUGH]))
    shown_lines = ", ".join(lines[:_MOST_LINES]) + (", …" if len(lines) > _MOST_LINES else "")
    where = f" (lines {shown_lines})" if len(lines) > 1 else ""
    first = places.text[starts[0] : starts[0] + 80].partition("\n")[0]
    yield UnplacedFlaw(starts[0], None, *said("comments", where=where, first=shown(first.rstrip())))


def _commas(places: TextPlaces, starts: list[int]) -> Iterator[UnplacedFlaw]:
    for start in starts[:ENOUGH]:
        yield UnplacedFlaw(start, None, *said("comma", around=places.around(start)))


def _repeated_keys(places: TextPlaces) -> Iterator[UnplacedFlaw]:
    """Keys given twice; HCCL and Python both take the last one."""
    for key, at, first in islice(repeated_keys(places.text), ENOUGH):
        values = {"key": shown(key), "line": places.spot(first).line, "around": places.around(at)}
        yield UnplacedFlaw(at, None, *said("key twice", **values))
