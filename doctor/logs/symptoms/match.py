"""Matcher: which sentences and lines can hold a symptom, which symptoms a line holds, and what a code means.

    matcher = Matcher(load_symptoms(...).symptoms)
    possible = matcher.possible(sentences)           # doctor.logs.sentence
    if sentence(line) in possible and matcher.holds(line):
        for symptom, taken in matcher.decide(text, form):
            ...                                      # text: made harmless; form: that of the line

Lines of other sentences hold no symptom. Only `decide` says what counts: it knows the forms,
and gives the most specific symptom first.
If a line holds two symptoms and one explains the other, only the explaining one counts ("cancelled due to
time limit" is not a plain cancel). A line of advice ("might be caused by") gives only the advice.

Answers depend only on the symptoms; the memory of earlier lines is bounded. One Matcher serves any number of
files, in one thread.
"""

from collections.abc import Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from functools import cached_property
from pathlib import Path

from doctor.judge.registry import check_ids
from doctor.logs.model import Form, Role, Symptom
from doctor.logs.symptoms.literals import stands, taken
from doctor.logs.symptoms.load import load_symptoms
from doctor.logs.symptoms.lookup import REST, SymptomLookup
from doctor.logs.symptoms.prefilter import Prefilter
from doctor.text.announce import announce


class Matcher:
    def __init__(self, symptoms: Iterable[Symptom]) -> None:
        self.symptoms = tuple(symptoms)

    @cached_property
    def _prefilter(self) -> Prefilter:
        """Made on first use: it is slow to make, and not needed to look up a name or a code."""
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

    def numbered(self, words: bytes) -> bytes:
        """An expression for the numbers by which lines of the sentence may hold other symptoms."""
        return self._prefilter.numbered(words)

    def decide(self, text: str, form: Form | None) -> tuple[tuple[Symptom, Mapping[str, str]], ...]:
        """The symptoms of one line with the values taken from it. If `form` is None, any form counts."""
        numbers = set(self._prefilter.owners(text.encode("utf-8", "surrogatepass")))
        held = [self.symptoms[number] for number in sorted(numbers)]
        here = [each for each in held if form is None or not each.forms or form in each.forms]
        if any(each.role is Role.ADVICE for each in here):
            here = [each for each in here if each.role is Role.ADVICE]
        here = [each for each in here if "(?P<only>" not in each.take or taken(each, text, 0)]
        why = [(other, glob) for other in here for glob in other.explains]
        here = [
            one for one in here if not any(fnmatchcase(one.id, glob) for by, glob in why if by is not one)
        ]
        here = [each for each in here if not each.id.endswith(REST)] or here
        here.sort(key=lambda each: -_weight(each, text))
        return tuple((each, taken(each, text, stands(text, each.patterns) or 0)) for each in here)

    @cached_property
    def lookup(self) -> SymptomLookup:
        """What finds the symptoms of a text that a person typed."""
        return SymptomLookup(self.symptoms)


def _weight(symptom: Symptom, text: str) -> int:
    """How much of the line the symptom matches."""
    return max(
        (sum(map(len, literals)) for literals in symptom.patterns if stands(text, [literals]) is not None),
        default=0,
    )


def matcher_of(folders: Sequence[Path], checks: Sequence[Path]) -> Matcher:
    """The matcher of all symptoms. Unusable symptoms of an entry point are reported and left out."""
    found = load_symptoms(folders, check_ids(checks))
    for broken in found.broken:
        announce(f"{broken.origin}: its symptoms could not be used: {broken.reason}")
    return Matcher(found.symptoms)
