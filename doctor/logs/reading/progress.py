"""Finds the last line of each rank that names a step or an epoch."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence

from doctor.logs.forms.line_facts import LineFacts
from doctor.logs.model import Form, LogLine
from doctor.logs.reading.fold import UnresolvedParty, who_of
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
"""A time in front of a line; it does not identify the writer."""
_SHORT = 20
IN_VAIN = 40
"""Lines of one sentence that may be examined in vain before it is given up."""
MOST = 4096
"""Ranks of one file."""


def says_step(text: str) -> bool:
    return len(text) < 2000 and not text.startswith("#") and _SAYS.search(text) is not None


class Progress:
    """The progress in one part of a file. Each window is searched from its end, until all its writers are
    found.
    """

    def __init__(self, said: Callable[[str], LineFacts]) -> None:
        self._said = said
        self._last: dict[UnresolvedParty, tuple[int, str]] = {}
        self._heads: dict[bytes, tuple[int, int]] = {}
        """Sentence -> the last character of the launcher's prefix in it, and how often the prefix has it."""
        self._writers: dict[bytes, UnresolvedParty] = {}
        """Writers by the prefix of their lines, or by the sentence if there is none."""
        self._vain: Counter[bytes] = Counter()
        """Sentence -> how many of its lines since the last hit did not name a step."""

    def take(self, lines: Lines, writers: Writers) -> None:
        groups = {words: places for words, places in lines.of(STEP).items() if self._vain[words] < IN_VAIN}
        for places, many in writers.parted(groups) if groups else ():
            self._look(lines, places, many)
        if len(self._vain) > MOST:
            self._vain.clear()

    def _look(self, lines: Lines, places: Sequence[int], many: int) -> None:
        seen: set[UnresolvedParty] = set()
        vain = 0
        more = False  # some lines have no rank in front, so the number of their writers is unknown
        for place in reversed(places):
            words, raw = lines.sentences[place], lines.raw[place]
            who = self._writers.get(self._head(words, raw) or words)
            vain += 1
            if who not in seen and self._vain[words] < IN_VAIN:
                who = self._writer(words, raw, who)
                self._vain[words] = 0 if who is not None else self._vain[words] + 1
                if who is not None and who not in seen:
                    vain = 0
                    seen.add(who)
                    more = more or (who.rank is None and who != UnresolvedParty())
                    self._add(who, lines.number(place), raw)
            if len(seen) >= many and (not more or vain >= IN_VAIN):
                return

    def _add(self, who: UnresolvedParty, number: int, raw: bytes) -> None:
        known = self._last.get(who)
        if len(self._last) < MOST if known is None else known[0] < number:
            self._last[who] = number, states(raw)[-1]

    def _writer(self, words: bytes, raw: bytes, who: UnresolvedParty | None) -> UnresolvedParty | None:
        """The writer of a line; None if it does not name a step. `who` is the writer if already known."""
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

    def lines(self, made: Callable[[int, str, LineFacts], LogLine]) -> dict[UnresolvedParty, LogLine]:
        return {who: made(number, text, self._said(text)) for who, (number, text) in self._last.items()}

    def _head(self, words: bytes, raw: bytes) -> bytes:
        """The prefix of the line, up to the last character that the launcher wrote, without a time."""
        last, times = self._heads.get(words, (0, 0))
        at = -1
        for _ in range(times):
            at = raw.find(last, at + 1)
        return raw[: at + 1] if at < _SHORT else _STAMP.sub(b"", raw[: at + 1])

    def _remember(self, words: bytes, raw: bytes, front: str, who: UnresolvedParty) -> None:
        if b"\r" in raw or not raw.startswith(front.encode()):
            return  # several states, or odd bytes
        if len(self._writers) >= MOST:
            self._writers.clear()
        length = len(sentence(front.encode()))
        self._heads[words] = (
            (words[length - 1], words.count(words[length - 1], 0, length)) if length else (0, 0)
        )
        self._writers[self._head(words, raw) or words] = who
