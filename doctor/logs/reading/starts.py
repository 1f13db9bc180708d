"""Finds where a program that ended begins again in a file: its first lines or its command come once more."""

import heapq
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import islice

from doctor.logs.reading.window import AROUND, Window
from doctor.logs.sentence import sentence
from doctor.logs.steps import says_step
from doctor.text.hostprogram import table

_WORDS, *_PATTERNS = ([row.encode() for row in rows] for _, *rows in table(__file__, "starts.txt"))
_ENDED, _COMMAND, _BY_PADDLE = (re.compile(b"|".join(rows)) for rows in _PATTERNS)
_FIRST, _BETWEEN = 12, 6
"""The first lines of a program, and the most lines between its end and its next beginning."""
_TOGETHER, _TELLING, _MOST, _NEAR = 3, 24, 100, 100


def starts(text: bytes) -> dict[bytes, int]:
    """What tells the beginning of a text, and where it is: lines that come together once until an end."""
    ended, found = [each.end() for each in _ends(text)], dict[bytes, int]()
    for at, _, said in _begin(text, 0, _FIRST):
        end = next((each for each in ended if each > at), len(text))
        if said and sentence(text[at:end]).count(said) == 1:
            found.setdefault(said, at)
    return found


def begun_again(window: Window, known: Mapping[bytes, int], alone: bool) -> Iterator[int]:
    """Where in a window its program begins again. `alone`: what follows a crash is written by another one."""
    first = window.number == 1
    ends = [*islice(_ends(window.text), _MOST)]
    below = [[*_begin(window.data, window.start + ended.end(), _BETWEEN)] for ended in ends]
    often = Counter(said for lines in below for said in {said for _, _, said in lines} if alone and said)
    for ended, lines in zip(ends, below, strict=True):
        for at, line, said in lines:
            command = _COMMAND.match(line)
            again = often[said] > 1 or (alone and bool(ended["dead"] or _BY_PADDLE.search(line)))
            before = window.data[: window.start + ended.start()]
            again |= command is not None and command[command.lastindex or 0] in before
            if again or (said in known and not (first and at <= known[said])):
                yield at
                break


def _ends(text: bytes) -> Iterator[re.Match[bytes]]:
    for at in heapq.merge(*(places(text, word) for word in _WORDS)):
        begin = text.rfind(b"\n", max(0, at - _NEAR), at) + 1
        if (begin or at < _NEAR) and (ended := _ENDED.match(text, begin)):
            yield ended


def places(data: bytes, word: bytes, start: int = 0) -> Iterator[int]:
    """Where the word is; a search by `find` is many times faster than one by `re`."""
    at = data.find(word, start)
    while at >= 0:
        yield at
        at = data.find(word, at + len(word))


def _begin(data: bytes, at: int, most: int) -> Iterator[tuple[int, bytes, bytes]]:
    """The next lines, and what each and the two below it say: nothing if they tell no beginning."""
    lines = list[tuple[int, bytes]]()
    for line in data[at : at + AROUND].split(b"\n", 2 * most):
        lines += [(at, line)] if line.strip() else []
        at += len(line) + 1
    for place, (start, line) in enumerate(lines[:most]):
        several = [each for _, each in lines[place : place + _TOGETHER]]
        said = [*map(sentence, several)]
        telling = len({*said}) == _TOGETHER and sum(map(len, said)) >= _TELLING and not line[:1].isspace()
        other = (_WORDS[0] in each or says_step(each.decode("utf-8", "replace")) for each in several[:2])
        yield start, line, b"\n".join(said) if telling and not any(other) else b""
