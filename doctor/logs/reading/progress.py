"""The last line of each rank that says how far it is."""

from __future__ import annotations

import re
from collections.abc import Callable

from doctor.logs.forms.said import Said
from doctor.logs.model import Form, Line
from doctor.logs.reading.fold import Who, who_of
from doctor.logs.reading.lines import Lines
from doctor.logs.reading.sentences import STEP
from doctor.logs.reading.window import states
from doctor.logs.sentence import sentence

_SAYS = re.compile(
    r"\b(?:global[_ ]?step|steps?|epochs?|iter(?:ation)?s?|batch(?:es)?)\b[\"'\]]?\s{0,4}[:=\[#(]?\s{0,12}\d"
    r"|\d{1,12}/\d{1,12} \[[^\]]{0,80}(?:it/s|s/it)",
    re.IGNORECASE,
)
NEAR = 64 << 10
MOST_LINES = 400
MOST = 4096
"""Ranks of one file."""


def says_step(text: str) -> bool:
    return len(text) < 2000 and not text.startswith("#") and _SAYS.search(text) is not None


class Progress:
    """Of one part of a file. Each window is looked at from its end on, until all ranks are found."""

    def __init__(self) -> None:
        self._last: dict[Who, tuple[int, str]] = {}
        self._heads: dict[bytes, int] = {}
        """Sentence -> how many of its characters are a launcher's, who wrote the line."""
        self._writers: dict[tuple[bytes, bytes], Who] = {}
        """By a sentence, and by what stands in front of the line."""

    def take(self, lines: Lines, enough: int, said: Callable[[str], Said]) -> None:
        seen: set[Who] = set()
        after = 0
        for place in range(len(lines.raw) - 1, max(len(lines.raw) - MOST_LINES, 0) - 1, -1):
            if after >= NEAR or len(seen) >= enough:
                return
            raw = lines.raw[place]
            after += len(raw) + 1
            if not lines.marks[place] & STEP:
                continue
            words = lines.sentences[place]
            head = self._head(words, raw)
            who = self._writers.get((words, head))
            if who in seen:
                continue
            text = states(raw)[-1]
            if not says_step(text):
                continue
            if who is None:
                own = said(text)
                if own.level in ("ERROR", "FATAL", "WARN") or own.form not in (Form.PLAIN, Form.MINDSPORE):
                    continue
                who = who_of(own)
                self._remember(words, raw, text[: own.prefix if own.form is Form.PLAIN else own.start], who)
            if who not in seen and (who in self._last or len(self._last) < MOST):
                seen.add(who)
                self._last[who] = lines.number(place), text

    def lines(self, made: Callable[[int, str, Said], Line], said: Callable[[str], Said]) -> dict[Who, Line]:
        return {who: made(number, text, said(text)) for who, (number, text) in self._last.items()}

    def _head(self, words: bytes, raw: bytes) -> bytes:
        """What stands in front of the line, up to the last character of the sentence that is a launcher's."""
        length = self._heads.get(words, 0)
        at = -1
        for _ in range(words.count(words[length - 1], 0, length) if length else 0):
            at = raw.find(words[length - 1], at + 1)
        return raw[: at + 1]

    def _remember(self, words: bytes, raw: bytes, front: str, who: Who) -> None:
        if b"\r" in raw or not raw.startswith(front.encode()):
            return  # several states, or odd bytes
        if len(self._writers) >= MOST:
            self._writers.clear()
        self._heads[words] = len(sentence(front.encode()))
        self._writers[words, self._head(words, raw)] = who
