"""A scene: a job starts on hosts of the lab, something goes wrong or only seems to, and doctor reports."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace

from tests.lab import Lab
from tests.trials.hang.answer import Answer, Named, functions
from tests.trials.hang.place import Place, allow_memory
from tests.trials.outcome import Outcome
from tests.trials.runner import Key

STANDS = 2.5
"""Seconds after the start of a fault: by then, no rank moves any more."""


@dataclass(frozen=True, slots=True)
class SceneTruth:
    """What the report must say. If the code is not 1, nobody may be accused."""

    codes: tuple[int, ...] = (1,)
    hosts: frozenset[str] = frozenset()
    pids: frozenset[int] = frozenset()
    """The processes at fault; empty if whole hosts are."""
    function: str = ""
    """Where they are."""
    says: str = ""
    """A part of what is said about them."""
    rank: int | None = None
    """The number of the rank; None if it need not be known."""
    moves: bool = False
    """Its steps go on, before doctor looks, while it looks, and afterwards."""

    def without_stacks(self) -> SceneTruth:
        """What is still to be said if no stack can be had. Some numbers of ranks are only in stacks."""
        return replace(self, function="", rank=None)

    def for_a_stranger(self) -> SceneTruth:
        """Whoever may not look into a process never accuses it; what it suspects must be right. What hosts
        and launchers show, everybody may see.
        """
        codes = (0, 3) if 1 not in self.codes else (3,) if self.pids else (1, 3)
        return replace(self.without_stacks(), codes=codes)


@dataclass(frozen=True, slots=True)
class SceneLook:
    """Who looks at a job, and with what."""

    name: str
    """What is added to the name of the scene."""
    user: str = "root"
    stacks: bool = True
    owners: tuple[str, ...] = ("root", "trainee")
    """Whose jobs are looked at in this way."""
    sees: Callable[[SceneTruth], SceneTruth] = lambda truth: truth

    def at(self, scene: HangScene) -> str:
        return f"{scene.name}{self.name}"


LOOKS = (
    SceneLook(""),
    SceneLook(", as its user", "trainee", owners=("trainee",)),
    SceneLook(", as another user", "trainee", owners=("root",), sees=SceneTruth.for_a_stranger),
    SceneLook(", without py-spy", stacks=False, sees=SceneTruth.without_stacks),
)
OWNERS = ("trainee", "root")
"""They take turns from trial to trial."""


def looks_at(scene: HangScene, number: int) -> list[Key]:
    """The looks at the job of this trial."""
    owner = OWNERS[number % len(OWNERS)]
    return [(each.at(scene), number) for each in LOOKS if owner in each.owners]


@dataclass(slots=True, kw_only=True)
class ScenePlace(Place):
    lot: random.Random
    """For what else is drawn."""


Play = Callable[[ScenePlace], AbstractContextManager[SceneTruth]]


@dataclass(frozen=True, slots=True)
class HangScene:
    name: str
    play: Play
    limit: float = 2.0
    """Seconds that a job may stand still: those of trials are only seconds old."""
    healthy: bool = False
    patience: float = 0.0
    """For so many seconds, look again until somebody is accused: launchers need time until they wait."""
    lacks: Callable[[], str] = str
    """Why it cannot be made here; empty if it can."""
    size: int = 1
    """How many hosts are named to doctor."""


def scene_place(lab: Lab, scene: HangScene, number: int) -> ScenePlace:
    lot = random.Random(f"{scene.name} {number}")
    port, step = lot.randrange(20_000, 30_000), lot.randrange(4, 12)
    return ScenePlace(lab, OWNERS[number % len(OWNERS)], port, step, lot=lot)


def play(lab: Lab, scene: HangScene, keys: Sequence[Key]) -> Iterator[Outcome]:
    """One job, and these looks at it."""
    number = keys[0][1]
    began, place = time.monotonic(), scene_place(lab, scene, number)
    try:
        with scene.play(place) as truth:
            before = place.steps()
            time.sleep(STANDS)
            for look in (each for each in LOOKS if (each.at(scene), number) in keys):
                after = place.steps()
                code, said = _looked(place, scene, look)
                where = f"{place.user}'s job, seen by {look.user}, step {place.step}"
                seconds = time.monotonic() - began
                answer = Answer(look.at(scene), number, where, code, said, seconds)
                made = held_to(look.sees(truth), answer)
                yield _gone_on(made, before, after, place) if truth.moves else made
                before = after
    finally:
        place.job.close()
        lab.reset()  # ends whatever the job left, by any name


def _gone_on(made: Outcome, before: int, after: int, place: Place) -> Outcome:
    """The outcome, and whether the job made steps before the look, during it, and then."""
    during = place.steps()
    time.sleep(STANDS)
    steps = after - before, during - after, place.steps() - during
    said = f"steps before, during and after: {', '.join(map(str, steps))}"
    return replace(made, detected=made.detected and min(steps) > 0, said=(*made.said, said))


def _looked(place: Place, scene: HangScene, look: SceneLook) -> tuple[int, str]:
    end = time.monotonic() + scene.patience
    hosts = f"node[1-{scene.size}]" if scene.size > 1 else "node1"
    allow_memory(place.hosts, look.stacks)
    while True:
        done = place.lab.doctor("hang", hosts, "--limit", f"{scene.limit:g}", "--json", "-", user=look.user)
        if done.returncode == 1 or time.monotonic() >= end:
            return done.returncode, done.stdout or done.stderr


def held_to(truth: SceneTruth, answer: Answer) -> Outcome:
    """Compare the report with the truth."""
    guilty, accused = answer.guilty, answer.code == 1 and 1 in truth.codes
    whom = guilty if accused else answer.suspected
    must = truth.codes == (1,) or truth.function
    named = all(_is(each, truth) for each in whom) and (bool(whom) or not must)
    if accused:
        named = named and {each["host"] for each in whom} == truth.hosts
    alone = all(_is(each, truth) for each in guilty) if 1 in truth.codes else not guilty
    return answer.outcome(answer.code in truth.codes, named, alone)


def _is(named: Named, truth: SceneTruth) -> bool:
    if named["host"] not in truth.hosts or truth.says not in named["summary"]:
        return False
    if truth.rank is not None and named["rank"] != truth.rank:
        return False
    if truth.pids and named["pid"] not in truth.pids:
        return False
    return not truth.function or truth.function in functions(named)
