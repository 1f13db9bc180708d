"""Finds the symptoms for a text that a person typed: by code, by fragment or by words."""

import math
import re
from collections import Counter
from collections.abc import Iterable

from doctor.logs.model import Symptom
from doctor.logs.symptoms.literals import place

MOST_TYPED = 10_000
"""The most characters that are examined."""
ENOUGH = 0.5
"""The share of the significant words of a text that a symptom must have to be named."""
_PART = re.compile(r"[a-z]+|(?<![0-9a-z])-?[0-9]+|[0-9]+")
_WORD = re.compile(r"[a-z][a-z0-9_]{2,}")
_SILENT = frozenset(("error", "code", "errcode", "errno", "status", "with", "nvrm", "number", "the"))
REST = ("-other", "-uncaught")
"""So ends the id of what is known of the rest of a family: it counts if nothing else in its line does."""
_BEFORE_A_CODE = frozenset(("ret", "exit", "rc"))
"""Words that a person may type before a code that is listed without them."""
_CHANGING = re.compile(r"\s+|[0-9]+")
_GAP = re.compile(r"…|\.\.\.")
LEAST_FRAGMENT = 6
"""The least number of letters that a text must have to be searched for in all messages."""
ALL_WORDS = 2
"""The least number of words for a search by words alone, if the text is not a part of a message."""
_SAME = {"exitcode": "exit", "exited": "exit", "rc": "exit", "retcode": "ret", "returncode": "exit"}


def spelled(code: str) -> str:
    """One spelling for `exit code -9`, `exitcode: -9`; `Xid 79`, `XID=79`; `EI0006`, `ei 0006`."""
    parts = _PART.findall(code[:MOST_TYPED].casefold())
    return " ".join(_SAME.get(part, part) for part in parts if part not in _SILENT)


class SymptomLookup:
    def __init__(self, symptoms: Iterable[Symptom]) -> None:
        self._codes: dict[str, list[Symptom]] = {}
        self._names: dict[str, list[Symptom]] = {}
        """The same for a name in one word, however its parts are joined: ParameterBroadcast."""
        self._words: list[tuple[Symptom, frozenset[str]]] = []
        self._seen: Counter[str] = Counter()
        self._messages: list[tuple[Symptom, tuple[str, ...]]] = []
        for symptom in symptoms:
            for key in dict.fromkeys(spelled(code) for code in symptom.codes):
                self._codes.setdefault(key, []).append(symptom)
                self._names.setdefault(key.replace(" ", ""), []).append(symptom)
            written = (*("…".join(each) for each in symptom.patterns), *symptom.examples, symptom.title)
            self._messages.append((symptom, tuple(map(_steady, written))))
            literals = (literal for pattern in symptom.patterns for literal in pattern)
            words = frozenset(_words(" ".join((symptom.title, *literals, *symptom.examples[:3]))))
            self._words.append((symptom, words))
            self._seen.update(words)

    def by_code(self, text: str) -> tuple[Symptom, ...]:
        """The symptoms of a typed code: EI0006, 507018, Xid 79, exit code -9. Its spelling may differ."""
        key = spelled(text)
        first, _, rest = key.partition(" ")
        found = self._codes.get(key) or (self._codes.get(rest) if first in _BEFORE_A_CODE else None)
        if not found and text.replace("_", "").replace("-", "").isalpha():
            found = self._names.get(key.replace(" ", ""))
        return tuple(found or ()) if key else ()

    def by_fragment(self, text: str) -> tuple[Symptom, ...]:
        """Symptoms with a message that contains the text, with any numbers; `…` stands for anything. If there
        are none, the symptoms that have all of its words.
        """
        parts = [part for each in _GAP.split(text[:MOST_TYPED]) if (part := _steady(each))]
        if sum(map(str.isalpha, "".join(parts))) >= LEAST_FRAGMENT:
            found = [
                each
                for each, messages in self._messages
                if any(place(message, parts) is not None for message in messages)
            ]
            if found:
                return tuple(sorted(found, key=lambda each: each.id.endswith(REST)))
        typed = _words(text)
        if len(typed) < ALL_WORDS:
            return ()
        return tuple(each for each, words in self._words if typed <= words)

    def by_words(self, text: str, most: int = 5) -> tuple[Symptom, ...]:
        """The symptoms that share the most words. Rare words weigh more, unknown ones like the rarest."""
        typed = _words(text)
        weights = {word: self._weight(word) for word in typed}
        total = sum(weights.values())
        if not total:
            return ()
        scores = (
            (sum(weights[word] for word in typed & words) / total, -number, symptom)
            for number, (symptom, words) in enumerate(self._words)
        )
        best = sorted((score for score in scores if score[0] >= ENOUGH), key=lambda s: s[:2], reverse=True)
        return tuple(symptom for _, _, symptom in best[:most])

    def _weight(self, word: str) -> float:
        return math.log((1 + len(self._words)) / (1 + self._seen.get(word, 0))) + 0.1


def _steady(text: str) -> str:
    """The text without numbers and other parts that vary between messages."""
    return _CHANGING.sub(lambda each: "#" if each[0].isdigit() else " ", text.casefold()).strip()


def _words(text: str) -> set[str]:
    return set(_WORD.findall(text[:MOST_TYPED].casefold()))
