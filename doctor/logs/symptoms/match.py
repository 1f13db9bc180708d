"""Matcher: which sentences and lines can hold a symptom, which symptoms a line holds, and what a code means.

    matcher = Matcher(load_symptoms(...).symptoms)
    possible = matcher.possible(sentences)           # doctor.logs.sentence
    if sentence(line) in possible and matcher.holds(line):
        for symptom, taken in matcher.decide(text, form):
            ...                                      # its text made harmless, and its form

Lines of other sentences hold no symptom. `decide` alone says what counts: it knows the forms,
and its answers are the most specific first.
Of two that one line holds, where one explains the other only that counts ("cancelled due to time limit" is
no plain cancel). A line of advice ("might be caused by") gives the advice alone.

Answers depend on nothing but the symptoms; what is remembered of lines seen before is bounded. One Matcher
serves any number of files, in one thread.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from functools import cached_property
from pathlib import Path

from doctor.judge.registry import check_ids
from doctor.logs.model import Form, Role, Symptom
from doctor.logs.symptoms.literals import stands, taken
from doctor.logs.symptoms.load import load_symptoms
from doctor.logs.symptoms.lookup import Lookup
from doctor.logs.symptoms.prefilter import Prefilter
from doctor.text.printable import clean_line
from doctor.text.terminal import tell


class Matcher:
    def __init__(self, symptoms: Iterable[Symptom]) -> None:
        self.symptoms = tuple(symptoms)
        self._lookup: Lookup | None = None

    @cached_property
    def _prefilter(self) -> Prefilter:
        """Not needed for a name or a code, and slow to make."""
        return Prefilter(
            (number, literals)
            for number, symptom in enumerate(self.symptoms)
            for literals in symptom.patterns
        )

    def possible(self, sentences: Iterable[bytes]) -> set[bytes]:
        """The sentences whose lines can hold the literals of a symptom."""
        return self._prefilter.possible(sentences)

    def holds(self, line: bytes) -> bool:
        """Whether the line holds the literals of a symptom."""
        return any(True for _ in self._prefilter.owners(line))

    def decide(self, text: str, form: Form | None) -> tuple[tuple[Symptom, Mapping[str, str]], ...]:
        """The symptoms of one line with the values that they take from it; in any form where it is None."""
        numbers = set(self._prefilter.owners(text.encode("utf-8", "surrogatepass")))
        here = [each for number in sorted(numbers) if _counts(each := self.symptoms[number], form)]
        if any(each.role is Role.ADVICE for each in here):
            here = [each for each in here if each.role is Role.ADVICE]
        here = [each for each in here if not any(_explains(other, each) for other in here)]
        here.sort(key=lambda each: -_weight(each, text))
        return tuple((each, taken(each, text, stands(text, each.patterns) or 0)) for each in here)

    def by_code(self, text: str) -> tuple[Symptom, ...]:
        """What a person typed as a code: EI0006, 507018, Xid 79, exit code -9; exact but for its spelling."""
        return self._words().by_code(text)

    def by_fragment(self, text: str) -> tuple[Symptom, ...]:
        """The symptoms of whose messages a text is a part, or that have all of its words."""
        return self._words().by_fragment(text)

    def by_words(self, text: str, most: int = 5) -> tuple[Symptom, ...]:
        """The symptoms that share the most telling words with a text; none where that would be a guess."""
        return self._words().by_words(text, most)

    def _words(self) -> Lookup:
        if self._lookup is None:
            self._lookup = Lookup(self.symptoms)
        return self._lookup


def _counts(symptom: Symptom, form: Form | None) -> bool:
    return form is None or not symptom.forms or form in symptom.forms


def _explains(symptom: Symptom, other: Symptom) -> bool:
    return symptom is not other and any(fnmatchcase(other.id, glob) for glob in symptom.explains)


def _weight(symptom: Symptom, text: str) -> int:
    """How much of the line the symptom knows."""
    return max(
        (sum(map(len, literals)) for literals in symptom.patterns if stands(text, [literals]) is not None),
        default=0,
    )


def matcher_of(folders: Sequence[Path], checks: Sequence[Path]) -> Matcher:
    """Of all symptoms. What an entry point brings and cannot be used is said, and stops nothing."""
    found = load_symptoms(folders, check_ids(checks))
    for broken in found.broken:
        tell(f"doctor: {clean_line(f'{broken.origin}: its symptoms could not be used: {broken.reason}')}\n")
    return Matcher(found.symptoms)
