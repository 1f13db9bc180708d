"""Finds the checks that are about a setting, a variable, an option, a file or a command.

Nothing is listed here: a check is about the words of its page, of its remedy, and of the commands and files
of its facts, and three checks are about every variable that a job may have (job/launch/variables).
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from doctor.judge.playbook import Recipe, load_remedies
from doctor.judge.registry import find_checks

if TYPE_CHECKING:
    from doctor.api import Check

MOST = 20
"""A word that more checks have than this is too common to lead anywhere."""
_SHELL = frozenset(
    ("sudo", "export", "set", "env", "$", "#", "for", "in", "do", "done", "if", "then", "fi", "while")
)
_NUMBER = re.compile(r"[-+]?\d[\d.,:]*[a-zA-Z]?")
_FLAG = re.compile(r"-{1,2}[a-zA-Z]")
_LONG_FLAG = re.compile(r"-{1,2}[a-zA-Z]\w")
_PROGRAM = re.compile(r"(?:^|[;|&'\"(] ?|\bsudo )(?!sudo )([a-z][\w.-]{1,40})", re.MULTILINE)
_SYSCTL = re.compile(r"(?:kernel|net|vm|fs)(?:\.\w+){1,6}")


@dataclass(frozen=True, slots=True)
class Mention:
    """`does` is what the checks do with the word: "mention", "compares the ranks'"."""

    checks: tuple[Check, ...]
    does: str
    word: str


def mentioned(text: str, folders: Sequence[Path]) -> Mention | None:
    """The checks about a typed word or command; those that say most of it come first. None if it is prose,
    or if no check is about it.
    """
    words = [word.strip(";()'\"`").partition("=")[0] for word in text.split() if word not in _SHELL]
    while len(words) > 1 and _NUMBER.fullmatch(words[-1]):
        words.pop()
    typed = " ".join(words)
    checks = {check.id: check for check in find_checks(folders).checks}
    texts = _Texts(checks.values())
    if not typed or (len(words) > 1 and not texts.is_command(words)):
        return None
    does = "mention"
    ids = texts.of_pages(typed)
    if not ids and len(words) > 1:
        does, ids = "are about", texts.with_most(words)
    if not ids and (found := _of_variable(typed) or _of_option(typed)):
        return Mention((checks[found[0]],), found[1], typed)
    ids = ids or texts.of_facts(typed)
    if len(ids) == 1:
        does = {"mention": "mentions", "are about": "is about"}[does]
    return Mention(tuple(checks[id] for id in ids), does, typed) if ids else None


class _Texts:
    """The texts of all checks: pages and remedies, and the commands and files of facts."""

    def __init__(self, checks: Iterable[Check]) -> None:
        recipes = load_remedies().recipes
        several = list(checks)
        self._pages = {check.id: "\n".join(_page(check, recipes)) for check in several}
        self._facts = {check.id: "\n".join(_of_facts(check)) for check in several}
        commands = "\n".join(line for each in recipes.values() for line in each.on(each.devices))
        self._programs = set(_PROGRAM.findall(commands)) - _SHELL

    def is_command(self, words: Sequence[str]) -> bool:
        return words[0] in self._programs or any(_FLAG.match(word) for word in words[1:])

    def of_pages(self, word: str) -> list[str]:
        """The checks whose page has the word; for net.core.somaxconn or /dev/davinci0 the name may do."""
        last = word.rpartition(".")[2] if _SYSCTL.fullmatch(word) else word.rstrip("0123456789")
        return _with(word, self._pages) or (_with(last, self._pages) if last != word else [])

    def of_facts(self, word: str) -> list[str]:
        return _with(word, self._facts) or _with(word.rstrip("0123456789"), self._facts)

    def with_most(self, words: Sequence[str]) -> list[str]:
        """The checks that have the most words of a command; rare words weigh more."""
        begin = next((place for place, word in enumerate(words) if word in self._programs), 0)
        telling = [word for word in words[begin:] if word[:1].isalpha() or _LONG_FLAG.match(word)]
        scores: dict[str, float] = {}
        for word in dict.fromkeys(telling):
            having = self.of_pages(word)
            for id in having:
                scores[id] = scores.get(id, 0.0) + math.log((1 + len(self._pages)) / len(having))
        best = max(scores.values(), default=0.0)
        return [id for id, score in scores.items() if score == best]


def _with(word: str, texts: Mapping[str, str]) -> list[str]:
    """The ids whose text has the word, the most frequent use first; none if there are too many."""
    if not word.strip("-"):
        return []
    capitals = 0 if word.isupper() else re.IGNORECASE  # RANK is a variable, "rank" is not
    pattern = re.compile(rf"(?<!\w){re.escape(word)}(?!\w)", capitals)
    counted = {id: len(pattern.findall(text)) for id, text in texts.items()}
    found = sorted((id for id, number in counted.items() if number), key=lambda id: -counted[id])
    return found if len(found) <= MOST else []


def _page(check: Check, recipes: Mapping[str, Recipe]) -> Iterator[str]:
    yield check.doc
    if recipe := recipes.get(check.remedy or ""):
        yield recipe.title
        yield from recipe.on(recipe.devices)


def _of_facts(check: Check) -> Iterator[str]:
    from doctor.api import Fact, OptionalNeed, Read

    for each in check.needs:
        need = each.need if isinstance(each, OptionalNeed) else each
        if not isinstance(need, Fact):
            continue
        if isinstance(need.command, Read):
            yield from (*need.command.paths, *need.command.there)
        elif isinstance(need.command.shell, str):
            yield need.command.shell


def _of_variable(name: str) -> tuple[str, str] | None:
    """The check that looks at every variable of that kind, and what it does."""
    from doctor.facts.software import of_one_host
    from doctor.job.launch.variables import PER_PROCESS, is_kept, is_setting, must_agree

    if must_agree(name):
        return "launch-inconsistent", "compares the ranks'"
    if PER_PROCESS.fullmatch(name):
        return "launch-ranks", "reads the ranks'"
    if is_setting(name) and not of_one_host(name):
        return "env-drift", "compares the hosts'"
    return ("launch-ranks", "reads the ranks'") if is_kept(name) and not is_setting(name) else None


def _of_option(word: str) -> tuple[str, str] | None:
    """The check of an option of a launcher, with dashes or without."""
    from doctor.job.launch.launchers import LAUNCHERS

    name = word.lstrip("-").replace("-", "_")
    several = [each.options for each in LAUNCHERS if name in each.options.values]
    if not several or not (word.startswith("-") or "_" in name):
        return None
    shared = any(options.values[name] in options.shared for options in several)
    return ("launch-inconsistent", "compares") if shared else ("launch-ranks", "reads")
