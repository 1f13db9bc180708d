"""Asks the tests that belong to a source whether they notice its change.

A test notices a change if it fails with it and passes without it. A test that fails without it is set aside.
"""

import time
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import PurePath

from tests.mutate.change import Change, made
from tests.mutate.tree import QUICK, Tree
from tests.support.paths import ROOT
from tests.touched import ALWAYS, touched

SLOW = ("-m", "slow")
UNIT = "tests/unit"


@dataclass(frozen=True, slots=True)
class Stage:
    name: str
    args: tuple[str, ...]
    limit: float
    """Seconds."""
    twice: bool = False
    """Its tests fail now and then on a busy machine: one that notices fails twice."""


@dataclass(frozen=True, slots=True)
class Answer:
    stage: str
    """The tests that noticed it; empty if none did."""
    by: str
    seconds: float


def stages(change: Change, callers: Collection[str]) -> list[Stage]:
    """The unit tests that call the function, those of its own folder first; then slow ones, then those of
    programs: those that name the file or are named after it, and all of its folder if no unit test calls it.
    Those of hosts are never asked: they take minutes.
    """
    found = [test for test in touched([change.path]) if test not in ALWAYS]
    own = [test for test in found if test.startswith(UNIT)]
    near = [test for test in callers if any(PurePath(test).is_relative_to(folder) for folder in own)]
    far = [test for test in callers if test not in near]
    programs = [test for test in found if test.startswith("tests/process")]
    cheap = [test for test in programs if not callers or (ROOT / test).is_file()]
    named = [
        ("own", QUICK, near or own, 300),
        ("others", QUICK, far, 600),
        ("slow", SLOW, own, 300),
        ("programs", (), cheap, 240),
    ]
    return [
        Stage(name, (*options, *tests), limit, not options) for name, options, tests, limit in named if tests
    ]


class Asker:
    """Knows the tests that fail without any change."""

    def __init__(self, sound: Tree) -> None:
        self.sound = sound
        self.aside = set[str]()
        self._passes = dict[tuple[str, ...], bool]()

    def ask(self, change: Change, tree: Tree, stamp: int, stages: Sequence[Stage]) -> Answer:
        began = time.monotonic()
        with made(change, tree.root, stamp):
            for stage in stages:
                if by := self._noticed(tree, stage):
                    return Answer(stage.name, by, round(time.monotonic() - began, 1))
        return Answer("", "", round(time.monotonic() - began, 1))

    def _noticed(self, tree: Tree, stage: Stage) -> str:
        while True:
            aside = [f"--deselect={test}" for test in sorted(self.aside)]
            result = tree.run([*stage.args, *aside], stage.limit)
            if result.passed or (stage.twice and not result.failed):
                return ""  # tests of programs have limits of their own, so only their number takes so long
            failed = result.failed or stage.args
            if self._pass_without(failed, stage) and not (
                stage.twice and self._by_chance(tree, failed, stage)
            ):
                return " ".join(result.failed) or "pytest did not come to its end"
            if not result.failed:
                return ""
            self.aside |= {*result.failed}

    def _by_chance(self, tree: Tree, tests: tuple[str, ...], stage: Stage) -> bool:
        """Whether they are not the same again, with the change and without it."""
        return tree.run(tests, stage.limit).passed or not self.sound.run(tests, stage.limit).passed

    def _pass_without(self, tests: tuple[str, ...], stage: Stage) -> bool:
        if tests not in self._passes or stage.twice:
            self._passes[tests] = self.sound.run(tests, stage.limit).passed
        return self._passes[tests]
