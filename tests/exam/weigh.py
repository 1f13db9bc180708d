"""Switches each condition of a judge off, alone, and shows which answers of the exam change.

A condition is a guard, made false and made true, or an operand of `and` and `or`, left out. What is judged is
read once; each change is made in a fork that imports the judge anew, so no file is written.
"""

import importlib.abc
import importlib.machinery
import importlib.util
import json
import os
import signal
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
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
    """What is switched off: a guard or an operand, not a number and not a comparison."""
    return [
        change
        for path in paths
        for site in sites_of(path, (ROOT / path).read_bytes())
        for change in site
        if change.text in ("True", "False")
        or (change.text.startswith("(") and not change.text.startswith("(not"))
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
    ) -> None:
        self.cases = {case.name: case for case in cases}
        self.read, self.answerer = read, answerer
        self.first = {*sys.modules}
        """What reading has imported; the judge and all that imports it come after."""
        self.sound = self._in_fork(None)

    def weigh(self, change: Change) -> Weight:
        try:
            found = self._in_fork(change)
        except TimeoutError:
            found = {}
        differ = [name for name, answer in self.sound.items() if found.get(name) != answer]
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

    def _in_fork(self, change: Change | None) -> dict[str, Answer]:
        reading, writing = os.pipe()
        if (pid := os.fork()) == 0:
            os.close(reading)
            signal.alarm(SECONDS)
            with os.fdopen(writing, "w") as out:
                json.dump(self._answers(change), out)
            os._exit(0)
        os.close(writing)
        with os.fdopen(reading) as given:
            text = given.read()
        if os.waitpid(pid, 0)[1] != 0:
            raise TimeoutError
        return {name: Answer(*row) for name, row in json.loads(text).items()}

    def _answers(self, change: Change | None) -> dict[str, tuple[int, str]]:
        for name in {*sys.modules} - self.first:
            if name.startswith("doctor."):
                del sys.modules[name]
        if change:
            sys.meta_path.insert(0, _Changed(change))
        found = dict[str, tuple[int, str]]()
        try:
            answer = self.answerer()
        except Exception:  # it cannot even be imported: every answer is gone
            return {}
        for name, given in self.read.items():
            found.update(_tried(name, answer, given))
        return found


def _tried(name: str, answer: Callable[[Any], Answer], read: Any) -> Iterator[tuple[str, tuple[int, str]]]:
    try:
        given = answer(read)
    except Exception:  # what breaks on a case has no answer to it
        return
    yield name, (given.code, given.text)


class _Changed(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Imports one module with a change."""

    def __init__(self, change: Change) -> None:
        self.change = change
        self.name = ".".join(Path(change.path).with_suffix("").parts).removesuffix(".__init__")

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        del path, target
        if fullname != self.name:
            return None
        place = ROOT / self.change.path
        inside = [str(place.parent)] if place.name == "__init__.py" else None
        return importlib.util.spec_from_file_location(
            fullname, place, loader=self, submodule_search_locations=inside
        )

    def exec_module(self, module: ModuleType) -> None:
        place = ROOT / self.change.path
        code = compile(self.change.applied(place.read_bytes()), str(place), "exec")
        exec(code, module.__dict__)
