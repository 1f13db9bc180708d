"""The last line of each rank that says how far it is."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from doctor.logs.forms.said import Said
from doctor.logs.model import Form, Line
from doctor.logs.reading.fold import Who, who_of
from doctor.logs.reading.lines import Lines
from doctor.logs.reading.sentences import STEP
from doctor.logs.reading.window import states
from doctor.logs.reading.writers import Writers
from doctor.logs.sentence import sentence

_SAYS = re.compile(
    r"\b(?:global[_ ]?step|steps?|epochs?|iter(?:ation)?s?|batch(?:es)?)\b[\"'\]]?\s{0,4}[:=\[#(]?\s{0,12}\d"
    r"|\d{1,12}/\d{1,12} \[[^\]]{0,80}(?:it/s|s/it)",
    re.IGNORECASE,
)
_STAMP = re.compile(rb"\d{4}-\d\d-\d\dT[\d:.]{8,18}Z ")
"""It tells writers apart no more than what they say."""
IN_VAIN = 400
"""Lines of one sentence in one window that are looked at for nothing."""
MOST = 4096
"""Ranks of one file."""


def says_step(text: str) -> bool:
    return len(text) < 2000 and not text.startswith("#") and _SAYS.search(text) is not None


class Progress:
    """Of one part of a file. Lines of a sentence are looked at from the last one on, until all who write it in
    that window are found.
    """

    def __init__(self, said: Callable[[str], Said]) -> None:
        self._said = said
        self._last: dict[Who, tuple[int, str]] = {}
        self._heads: dict[bytes, int] = {}
        """Sentence -> how many of its characters are a launcher's, who wrote the line."""
        self._writers: dict[tuple[bytes, bytes], Who] = {}
        """By a sentence, and by what stands in front of the line."""

    def take(self, lines: Lines, writers: Writers) -> None:
        found: dict[Who, int] = {}
        for words, places in lines.of(STEP).items():
            self._look(lines, words, places, writers.many(words), found)
        for who, place in found.items():
            self._last[who] = lines.number(place), states(lines.raw[place])[-1]

    def _look(self, lines: Lines, words: bytes, places: Sequence[int], many: int, found: dict[Who, int]) -> None:
        here: set[Who] = set()
        in_vain = 0
        for place in reversed(places):
            raw = lines.raw[place]
            who = self._writers.get((words, self._head(words, raw)))
            if who in here:
                in_vain += many == 0
            elif (who := self._writer(words, raw, who)) is not None:
                here.add(who)
                if who in self._last or who in found or len(self._last) + len(found) < MOST:
                    found[who] = max(place, found.get(who, 0))
            else:
                in_vain += 1
            alone = many == 0 and here == {Who()}
            if alone or len(here) >= many > 0 or in_vain >= IN_VAIN:
                return

    def _writer(self, words: bytes, raw: bytes, who: Who | None) -> Who | None:
        """None where the line says no step. `who` is it, if it is known who wrote it."""
        text = states(raw)[-1]
        if not says_step(text):
            return None
        if who is not None:
            return who
        own = self._said(text)
        if own.level in ("ERROR", "FATAL", "WARN") or own.form not in (Form.PLAIN, Form.MINDSPORE):
            return None
        who = who_of(own)
        self._remember(words, raw, text[: own.prefix if own.form is Form.PLAIN else own.start], who)
        return who

    def lines(self, made: Callable[[int, str, Said], Line]) -> dict[Who, Line]:
        return {who: made(number, text, self._said(text)) for who, (number, text) in self._last.items()}

    def _head(self, words: bytes, raw: bytes) -> bytes:
        """What stands in front of the line, up to the last character of the sentence that is a launcher's."""
        length = self._heads.get(words, 0)
        at = -1
        for _ in range(words.count(words[length - 1], 0, length) if length else 0):
            at = raw.find(words[length - 1], at + 1)
        return _STAMP.sub(b"", raw[: at + 1])

    def _remember(self, words: bytes, raw: bytes, front: str, who: Who) -> None:
        if b"\r" in raw or not raw.startswith(front.encode()):
            return  # several states, or odd bytes
        if len(self._writers) >= MOST:
            self._writers.clear()
        self._heads[words] = len(sentence(front.encode()))
        self._writers[words, self._head(words, raw)] = who
