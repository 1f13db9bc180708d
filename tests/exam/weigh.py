"""Switches each condition of a judge off, alone, and shows which answers of the exam change.

A condition is a guard, made false and made true, or an operand of `and` and `or`, left out. What is judged is
read once; each change is made in a fork, in the functions of the judge that is loaded, so no file is written.
Only those cases are asked that reach the line of the condition: the others answer as before.
"""

import gc
import inspect
import json
import os
import signal
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from types import CodeType, FrameType, FunctionType
from typing import Any

from tests.exam.answers import Answer
from tests.exam.cases import Case
from tests.exam.jobs import JobCase
from tests.mutate.change import Change
from tests.mutate.draw import sites_of
from tests.support.paths import ROOT

SECONDS = 60
"""A change that makes the judge run for longer has changed every answer."""


def conditions(paths: Iterable[str]) -> list[Change]:
    """What is switched off: a guard or an operand inside a function, not a number and not a comparison."""
    return [
        change
        for path in paths
        for site in sites_of(path, (ROOT / path).read_bytes())
        for change in site
        if change.function
        and (
            change.text in ("True", "False")
            or (change.text.startswith("(") and not change.text.startswith("(not"))
        )
    ]


@dataclass(frozen=True, slots=True)
class Weight:
    """The cases whose answer a condition changes: the headline, only the text below, and the worth."""

    change: Change
    headlines: tuple[str, ...]
    texts: tuple[str, ...]
    worth: Mapping[str, str]
    """Case -> "right to false" and the like."""

    def told(self) -> dict[str, object]:
        kinds = ("right answers", self.worth), ("a headline", self.headlines), ("a text", self.texts)
        for_what = next((kind for kind, cases in kinds if cases), "nothing")
        return {
            "place": f"{self.change.path}:{self.change.line}",
            "for": for_what,
            "worth": dict(self.worth),
            "headlines": self.headlines,
            "texts": self.texts,
        }


class Weighing:
    def __init__(
        self,
        cases: Sequence[Case | JobCase],
        read: Mapping[str, Any],
        answerer: Callable[[], Callable[[Any], Answer]],
        paths: Iterable[str],
    ) -> None:
        self.cases = {case.name: case for case in cases}
        self.read, self.answer = read, answerer()
        self.sound = self._answers(self.read, None)
        files = {str(ROOT / path): path for path in paths}
        self.reached = {name: frozenset(_in_fork(self._lines, name, files)) for name in read}
        """Case -> the lines that are run for it, as `file:line`. Each in a fork: what is kept hides calls."""

    def reaching(self, change: Change) -> list[str]:
        """The cases that run the line of the change."""
        return [name for name in self.sound if f"{change.path}:{change.line}" in self.reached[name]]

    def weigh(self, change: Change) -> Weight:
        reaching = self.reaching(change)
        found = dict[str, Answer]()
        with suppress(TimeoutError):
            found = self._answers(reaching, change)
        differ = [name for name in reaching if found.get(name) != self.sound[name]]
        heads = [
            name for name in differ if name not in found or found[name].headline != self.sound[name].headline
        ]
        worth = {}
        for name in heads:
            before, after = (self._worth(name, answers.get(name)) for answers in (self.sound, found))
            if before != after:
                worth[name] = f"{before} to {after}"
        return Weight(change, tuple(heads), tuple(name for name in differ if name not in heads), worth)

    def _worth(self, name: str, answer: Answer | None) -> str:
        return self.cases[name].worth(answer.code, answer.text) if answer else "broken"

    def _answers(self, names: Iterable[str], change: Change | None) -> dict[str, Answer]:
        given = _in_fork(self._given, [*names], change) if [*names] else {}
        return {name: Answer(*row) for name, row in given.items()}

    def _given(self, names: Iterable[str], change: Change | None) -> dict[str, tuple[int, str]]:
        if change:
            _switch(change)
        found = dict[str, tuple[int, str]]()
        for name in names:
            with suppress(Exception):  # what breaks on a case has no answer to it
                answer = self.answer(self.read[name])
                found[name] = answer.code, answer.text
        return found

    def _lines(self, name: str, files: Mapping[str, str]) -> list[str]:
        seen = set[str]()

        def called(frame: FrameType, _: str, __: object) -> Callable[..., Any] | None:
            return run if frame.f_code.co_filename in files else None

        def run(frame: FrameType, _: str, __: object) -> Callable[..., Any]:
            seen.add(f"{files[frame.f_code.co_filename]}:{frame.f_lineno}")
            return run

        sys.settrace(called)
        with suppress(Exception):
            self.answer(self.read[name])
        sys.settrace(None)
        return [*seen]


def _in_fork(work: Callable[..., Any], *args: object) -> Any:
    """What it returns, as JSON brings it home."""
    reading, writing = os.pipe()
    if (pid := os.fork()) == 0:
        os.close(reading)
        signal.alarm(SECONDS)
        with os.fdopen(writing, "w") as out:
            json.dump(work(*args), out)
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as given:
        text = given.read()
    if os.waitpid(pid, 0)[1] != 0:
        raise TimeoutError
    return json.loads(text)


def _switch(change: Change) -> None:
    """Gives the functions that are loaded the code of the changed source."""
    place = ROOT / change.path
    sound = place.read_bytes()
    before, after = (
        _functions(compile(source, str(place), "exec")) for source in (sound, change.applied(sound))
    )
    new = {(old.co_name, old.co_firstlineno): each for old, each in zip(before, after, strict=True)}
    for function in gc.get_objects():
        if isinstance(function, FunctionType) and function.__code__.co_filename == str(place):
            code = function.__code__
            if each := new.get((code.co_name, code.co_firstlineno)):
                function.__code__ = each


def _functions(code: CodeType) -> Iterator[CodeType]:
    """The functions and methods of a module, without what is inside them."""
    for each in code.co_consts:
        if isinstance(each, CodeType):
            if each.co_flags & inspect.CO_NEWLOCALS:
                yield each
            else:
                yield from _functions(each)
