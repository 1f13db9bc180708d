"""Decides once for each sentence what to look for in its lines.

A mark says what a line *can* be; the line itself decides whether it is. Lines without a mark are never
touched.
"""

from collections.abc import Sequence, Set
from functools import reduce
from operator import or_

from doctor.logs.forms import complaint, learn
from doctor.logs.reading import attempts
from doctor.logs.sentence import sentence
from doctor.logs.symptoms.match import Matcher

SYMPTOM, ODD, TELLS, LOSS, STEP, PREFIX, LAUNCHER, ENDS = (1 << bit for bit in range(8))
_WORDS = {
    ODD: complaint.TRIGGERS,
    TELLS: learn.TRIGGERS,
    LOSS: (b"loss", b"Loss", b"LOSS", b"step time"),
    STEP: (b"tep", b"poch", b"iter", b"Iter", b"STEP", b"EPOCH", b"it/s", b"s/it", b"atch"),
    PREFIX: (b"[rank", b"std"),
    LAUNCHER: (b"torch/distributed/", b"host      :", *attempts.GAVE_UP),
    ENDS: attempts.WORDS,
}
"""At least one of the words of a mark is in every line of that kind."""
MOST_BYTES = 12_000_000
"""Bytes of remembered sentences; beyond that, all are forgotten and examined again."""
_EACH = 120
"""Bytes that Python needs for each sentence besides its text."""
TOGETHER = 200
"""Sentences that are searched at once."""


class Sentences:
    """The marks of sentences, for any number of files."""

    def __init__(self, matcher: Matcher) -> None:
        self._matcher = matcher
        self._words = [(sentence(word), word, mark) for mark, words in _WORDS.items() for word in words]
        self._words += [(b"E::", b":", ODD), (b"F::", b":", ODD)]
        self._words += [(b":E", b": E ", ODD), (b":F", b": F ", ODD)]  # glog and TSL have no word for errors
        self._marks: dict[bytes, int] = {}
        self._telling = set[bytes]()
        """Those with marks."""
        self._written: dict[bytes, list[bytes]] = {}
        """Sentence -> the words of ODD and TELLS in it; a line that complains or shows a rank has one."""
        self._held = 0

    def marks(self, sentences: Set[bytes], text: bytes) -> dict[bytes, int]:
        """The marks of the sentences that have any. `text` holds the lines of these sentences."""
        fresh = sentences - self._marks.keys()
        if fresh and self._held > MOST_BYTES:
            self._marks.clear()
            self._telling.clear()
            self._written.clear()
            self._held, fresh = 0, set(sentences)
        if fresh:
            self._look(list(fresh))
        found = {words: self._marks[words] for words in self._telling.intersection(sentences)}
        return self._as_written(found, text)

    def _as_written(self, found: dict[bytes, int], text: bytes) -> dict[bytes, int]:
        """The marks without those whose words are in the sentence, but nowhere in the text as written."""
        doubtful = [words for words in found if words in self._written]
        here = {word: word in text for word in {word for words in doubtful for word in self._written[words]}}
        for words in doubtful:
            if not any(map(here.__getitem__, self._written[words])):
                found[words] &= ~(ODD | TELLS)
                if not found[words]:
                    del found[words]
        return found

    def may(self, words: bytes, text: bytes) -> bool:
        """Whether the text, which has lines of the sentence, may complain or show a rank: it must hold a word
        of the sentence as the word is written.
        """
        return any(map(text.__contains__, self._written[words]))

    def _look(self, fresh: Sequence[bytes]) -> None:
        possible = self._matcher.possible(fresh)
        for begin in range(0, len(fresh), TOGETHER):
            some = fresh[begin : begin + TOGETHER]
            together = b"\n".join(some)
            words = [each for each in self._words if each[0] in together]
            for each in some:
                here = [found for found in words if found[0] in each]
                mark = reduce(or_, (mark for _, _, mark in here), SYMPTOM if each in possible else 0)
                self._marks[each] = mark
                self._telling |= {each} if mark else set()
                if mark & (ODD | TELLS):
                    self._written[each] = [word for _, word, mark in here if mark & (ODD | TELLS)]
            self._held += len(together) + _EACH * len(some)
