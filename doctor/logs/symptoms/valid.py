"""Examines symptoms: patterns must be specific, `take` must be fast, examples must match.

A pattern that matches everything would accuse innocent ranks, so doubtful patterns are refused.
"""

import importlib
import re
import sys
from collections.abc import Collection, Iterable, Iterator
from fnmatch import fnmatchcase
from functools import partial
from typing import Any

from doctor.errors import Mistake, suggest
from doctor.logs.model import Role, Symptom
from doctor.logs.symptoms.entry import SymptomEntry
from doctor.logs.symptoms.literals import compiled, place, stands, taken
from doctor.logs.symptoms.numbers import ALL, patterns_of
from doctor.text.hostprogram import host_program
from doctor.text.textfile import shown

_NEW = sys.version_info >= (3, 11)
sre: Any = importlib.import_module("re._constants" if _NEW else "sre_constants")
sre_parse: Any = importlib.import_module("re._parser" if _NEW else "sre_parse")

LEAST = 6
"""The least number of characters of the longest literal of a pattern."""
MOST_WIDE = 2
"""The most endless repetitions of nearly any character in one `take`: each multiplies the time it needs."""
MOST_TAKE = 500
_MANY = 20
"""A repetition with a higher limit counts as endless."""

GENERAL = frozenset(host_program(__file__, "general.txt").split())
"""Words that mean nothing by themselves, however many of them are in a pattern."""
_NAMED = re.compile(r"[^\W\d_]{2,}|[A-Z]\d{4,}")
_WORD, _SPECIFIC = re.compile(r"[^\W\d_]+|[0-9]+"), re.compile(r"::|(?: {3}|\|)\d{1,3}:|^0/\d $|^: line $")


def mistakes_of(
    entries: Collection[SymptomEntry], thorough: Collection[SymptomEntry], checks: Iterable[str] | None
) -> list[Mistake]:
    """The mistakes in the entries `thorough`: names, patterns, `take` and examples."""
    ids = {entry.symptom.id: entry for entry in entries}
    known = None if checks is None else set(checks)
    return [
        Mistake(entry.symptom.origin, entry.at(name, value), message)
        for entry in thorough
        for rule in (partial(_names, ids=ids, checks=known), _patterns, _take, _examples)
        for name, value, message in rule(entry.symptom)
    ]


_Found = Iterator[tuple[str, str, str]]
"""The field, its value, and the mistake."""


def _names(symptom: Symptom, ids: dict[str, SymptomEntry], checks: set[str] | None) -> _Found:
    for glob in symptom.explains:
        if not any(fnmatchcase(id, glob) for id in ids if id != symptom.id):
            yield "explains", glob, f"no other symptom is called {_and_near(glob, ids)}"
    for check in symptom.checks:
        if checks is not None and check not in checks:
            yield "checks", check, f"no check is called {_and_near(check, checks)}"


def _and_near(name: str, known: Iterable[str]) -> str:
    near = suggest(name, known)
    return shown(name) + (f"; {near}" if near else "")


def general(literals: Iterable[str]) -> bool:
    """Whether a pattern would match unrelated lines."""
    texts = list(literals)
    if max(map(len, texts), default=0) < LEAST or not any(map(_NAMED.search, texts)):
        return True  # a number may be a step, a pid or a loss
    words = [word.casefold() for text in texts for word in _WORD.findall(text)]
    return all(word in GENERAL for word in words) and not any(_SPECIFIC.search(text) for text in texts)


def _patterns(symptom: Symptom) -> _Found:
    for literals in symptom.patterns:
        if symptom.role is not Role.ADVICE and general(literals):
            told = " … ".join(literals)
            yield (
                "any",
                literals[0],
                f"the pattern {shown(told)} is too general: it would match lines of other causes"
                f" (it needs a text of at least {LEAST} characters with more than general words)",
            )


def _take(symptom: Symptom) -> _Found:
    take = (symptom.take,) if symptom.take else ()
    for field, several in (("take", take), ("above", symptom.above), ("below", symptom.below)):
        for each in several:
            for message in _expression(field, each):
                yield field, each, message


def _expression(field: str, written: str) -> Iterator[str]:
    """The mistakes in a regular expression that gets values out of a line."""
    if len(written) > MOST_TAKE:
        yield f"{field} is longer than {MOST_TAKE} characters"
        return
    try:
        pattern = compiled(written)
        tree = sre_parse.parse(written)
    except (re.error, OverflowError, RecursionError) as error:
        yield f"{field} is not a valid regular expression: {shown(str(error))}"
        return
    if not pattern.groupindex:
        yield f"{field} has no named group, such as (?P<rank>[0-9]+)"
    for message in dict.fromkeys(_slow(tree)):
        yield f"{field} may be very slow on a hostile line: {message}"


def _slow(tree: Any) -> Iterator[str]:
    """Why a pattern may be slow; conservative, since anybody may write a log."""
    wide = [0]
    yield from _walk(tree, False, wide)
    if wide[0] > MOST_WIDE:
        yield f"more than {MOST_WIDE} endless repetitions of nearly any character (`.*`, `[^x]*`, `\\S+`)"


def _walk(tree: Any, inside: bool, wide: list[int]) -> Iterator[str]:
    before = False
    for op, value in tree:
        endless = False
        if op in (sre.MAX_REPEAT, sre.MIN_REPEAT) or str(op) == "POSSESSIVE_REPEAT":
            _, most, repeated = value
            endless = most > _MANY
            if most > 1 and inside:
                yield "a repetition inside a repetition"
            if endless and before:
                yield "two endless repetitions with nothing fixed between them"
            if endless and _wide(repeated):
                wide[0] += 1
            yield from _walk(repeated, inside or most > 1, wide)
        elif op is sre.SUBPATTERN:
            group = value[3]
            endless = any(_endless(item) for item in group[-1:])
            if before and any(_endless(item) for item in group[:1]):
                yield "two endless repetitions with nothing fixed between them"
            yield from _walk(group, inside, wide)
        elif op is sre.BRANCH:
            for branch in value[1]:
                yield from _walk(branch, inside, wide)
        elif op in (sre.GROUPREF, sre.GROUPREF_EXISTS):
            yield "a reference to a group"
        elif op in (sre.ASSERT, sre.ASSERT_NOT):
            yield "a look ahead or behind"
        elif str(op) == "ATOMIC_GROUP":
            yield from _walk(value, inside, wide)
        before = endless


def _endless(item: Any) -> bool:
    op, value = item
    return op in (sre.MAX_REPEAT, sre.MIN_REPEAT) and value[1] > _MANY


def _wide(repeated: Any) -> bool:
    """Whether nearly any character may be repeated."""
    for op, value in repeated:
        if op is sre.ANY or op is sre.NOT_LITERAL:
            return True
        if op is sre.IN and any(
            each is sre.NEGATE or (each is sre.CATEGORY and "NOT" in str(what)) for each, what in value
        ):
            return True
    return False


def _examples(symptom: Symptom) -> _Found:
    written = {*symptom.patterns} - {*patterns_of(symptom.number, ALL)}
    if written and not symptom.examples:
        yield "any", "", f"{symptom.id} has no example: add a line that it must match"
    for text in symptom.examples:
        if symptom.patterns and stands(text, symptom.patterns) is None:
            yield "example", text, f"the example does not match: {shown(text[:100])}"
    for text in symptom.counter_examples:
        if stands(text, symptom.patterns) is not None:
            yield "not", text, f"this line must not match, and does: {shown(text[:100])}"
    for literals in symptom.patterns:
        if (
            literals in written
            and symptom.examples
            and not any(place(text, literals) is not None for text in symptom.examples)
        ):
            told = " … ".join(literals)
            yield (
                "any",
                literals[0],
                f"no example matches the pattern {shown(told)}: it was never seen to work",
            )
    if symptom.take and symptom.examples:
        places = [(text, stands(text, symptom.patterns)) for text in symptom.examples]
        try:
            if not any(at is not None and taken(symptom, text, at) for text, at in places):
                yield "take", "", "take finds nothing in any example"
        except (re.error, OverflowError, RecursionError):
            return  # reported already
