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
LEAST = 6
"""The least number of characters of an option that is also looked for without its dashes."""
_SHELL = frozenset(("sudo", "export", "set", "env", "$", "#", "for", "in", "do", "done", "if", "then", "fi"))
_VERB = re.compile(
    r"start|stop|restart|status|enable|disable|set|get|list|show|add|del|delete|allow|true|false|on|off"
)
"""Words of commands that say what is done, not what it is about."""
_NUMBER = re.compile(r"[-+]?\d[\d.,:]*[a-zA-Z]?")
_EXAMPLE = re.compile(r"(?:node|host|eth|ens|dev)\d*")
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
    words = [each for word in text.split() if word not in _SHELL and (each := _bare(word))]
    while len(words) > 1 and _NUMBER.fullmatch(words[-1]):
        words.pop()
    if not words:
        return None
    typed = " ".join(words)
    checks = {check.id: check for check in find_checks(folders).checks}
    texts = _Texts(checks.values())
    does = "mention"
    if len(words) == 1:
        ids = texts.of_pages(typed)
        if not ids and (found := _of_variable(typed) or _of_option(typed)):
            return Mention((checks[found[0]],), found[1], typed)
        ids = ids or _with(typed, texts.facts) or _with(typed.rstrip("0123456789"), texts.facts)
        if not ids and len(bare := typed.lstrip("-")) >= LEAST:
            typed, ids = bare, texts.of_pages(bare)
    elif texts.is_command(words):
        ids = texts.of_pages(typed)
        if not ids:
            does, ids = "are about", texts.of_command(words)
    else:
        return None
    if len(ids) == 1:
        does = {"mention": "mentions", "are about": "is about"}[does]
    return Mention(tuple(checks[id] for id in ids), does, typed) if ids else None


def _bare(word: str) -> str:
    """The name in NAME=value or --name=value; the value if it is a path."""
    name, _, value = word.strip(";()'\"`").partition("=")
    return value if name.startswith("-") and value.startswith("/") else name


class _Texts:
    """The texts of all checks: pages and remedies, and the commands and files of facts."""

    def __init__(self, checks: Iterable[Check]) -> None:
        recipes = load_remedies().recipes
        several = list(checks)
        self._pages = {check.id: "\n".join(_page(check, recipes)) for check in several}
        self.facts = {check.id: "\n".join(_of_facts(check)) for check in several}
        self._commands = {check.id: "\n".join(_commands(check, recipes)) for check in several}
        self._programs = set(_PROGRAM.findall("\n".join(self._commands.values()))) - _SHELL

    def is_command(self, words: Sequence[str]) -> bool:
        """Whether it begins with a program of a remedy, or has an option or a variable of a check."""
        if self._programs.intersection(words):
            return True
        flags = [word for word in words if _FLAG.match(word)]
        return bool(flags) and any(_with(word, self._pages) for word in (words[0], *flags))

    def of_pages(self, word: str) -> list[str]:
        """The checks whose page has the word; for net.core.somaxconn or /dev/davinci0 the name may do."""
        last = word.rpartition(".")[2] if _SYSCTL.fullmatch(word) else word.rstrip("0123456789")
        return _with(word, self._pages) or (_with(last, self._pages) if last != word else [])

    def of_command(self, words: Sequence[str]) -> list[str]:
        """The checks about what the command works on; if it names nothing, those about its program."""
        begin = next((place for place, word in enumerate(words) if word in self._programs), 0)
        program, *rest = words[begin:]
        one_flag = bool(rest) and bool(_FLAG.match(rest[0])) and not any(map(_FLAG.match, rest[1:]))
        if one_flag and (found := _with(f"{program} {rest[0]}", self._pages)):  # ulimit -n unlimited
            return found
        objects = [word for word in dict.fromkeys(rest) if _is_object(word)]
        own = self.of_pages(program)
        scores: dict[str, float] = {}
        for word in objects:
            having = self.of_pages(word)
            for id in having:
                scores[id] = scores.get(id, 0.0) + math.log((1 + len(self._pages)) / len(having))
        if not scores:  # an unknown object matters, an unknown option or path does not
            return [] if objects and all(map(str.isalpha, objects)) else own
        best = max(scores[id] + (id in own) for id in scores)
        return [id for id, score in scores.items() if score + (id in own) == best]


def _is_object(word: str) -> bool:
    if _NUMBER.fullmatch(word) or _EXAMPLE.fullmatch(word) or _VERB.fullmatch(word):
        return False
    return word[0].isalpha() or word[0] == "/" or _LONG_FLAG.match(word) is not None


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
    yield from (check.id, check.doc)
    if recipe := recipes.get(check.remedy or ""):
        yield recipe.title
    yield from _commands(check, recipes)


def _commands(check: Check, recipes: Mapping[str, Recipe]) -> Iterator[str]:
    if recipe := recipes.get(check.remedy or ""):
        yield from recipe.on(recipe.devices)


def _of_facts(check: Check) -> Iterator[str]:
    from doctor.api import Fact, Read

    for need in check.wanted:
        if not isinstance(need, Fact):
            continue
        if isinstance(need.command, Read):
            yield from (*need.command.paths, *need.command.there)
        elif isinstance(need.command.shell, str):
            yield need.command.shell


def _of_variable(name: str) -> tuple[str, str] | None:
    """The check that looks at every variable of that kind, and what it does."""
    from doctor.facts.software import of_one_host
    from doctor.job.launch.launchers import NUMBERS
    from doctor.job.launch.variables import PER_PROCESS, is_setting, must_agree

    if must_agree(name):
        return "launch-inconsistent", "compares the ranks'"
    if PER_PROCESS.fullmatch(name) or any(name in each.names() for each in NUMBERS.values()):
        return "launch-ranks", "reads the ranks'"
    return ("env-drift", "compares the hosts'") if is_setting(name) and not of_one_host(name) else None


def _of_option(word: str) -> tuple[str, str] | None:
    """The check of an option of a launcher, with dashes or without."""
    from doctor.job.launch.launchers import LAUNCHERS

    name = word.lstrip("-").replace("-", "_")
    if not (word.startswith("-") or "_" in name):
        return None
    means = [(each.options.values.get(name), each.options) for each in LAUNCHERS]
    if any(value and value in options.shared for value, options in means):
        return "launch-inconsistent", "compares"
    return ("launch-ranks", "reads") if any(value for value, _ in means) else None
