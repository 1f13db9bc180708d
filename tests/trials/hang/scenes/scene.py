"""A scene: a job starts on hosts of the lab, something goes wrong or only seems to, and doctor reports."""

from __future__ import annotations

import json
import random
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from tests.lab import Host, Lab
from tests.support.hang.named import culprits, suspects
from tests.support.injob import Job, environment
from tests.trials.outcome import Outcome

FOLDER = "/tmp/hang-scene"
PATIENCE = 240.0
STANDS = 2.5
"""Seconds after the start of a fault: by then, no rank moves any more."""
JOBS = Path(__file__).parents[1] / "jobs"
RUNS_MEMORY = 'd=$(mktemp -d); mount -t proc proc "$d"; echo "$1" >"$d/sys/vm/memfd_noexec"; umount "$d"'
"""A kernel of Linux 6.3 or later may forbid programs in memory, and py-spy is sent as one."""


class NoScene(Exception):
    """The job did not get to what the scene is about."""


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


def looks_at(scene: HangScene, number: int, done: Collection[tuple[str, int]]) -> list[SceneLook]:
    """The looks at the job of this trial that were not made."""
    owner = OWNERS[number % len(OWNERS)]
    return [each for each in LOOKS if owner in each.owners and (each.at(scene), number) not in done]


@dataclass(slots=True)
class ScenePlace:
    """Where a scene plays: the lab, and what is drawn for this trial."""

    lab: Lab
    lot: random.Random
    user: str = "root"
    job: Job = field(default_factory=Job)
    port: int = 0
    step: int = 0
    patience: float = PATIENCE

    def __post_init__(self) -> None:
        self.port, self.step = self.lot.randrange(20_000, 30_000), self.lot.randrange(4, 12)

    @property
    def hosts(self) -> Sequence[Host]:
        return self.lab.hosts

    def run(
        self,
        host: Host,
        words: Sequence[str],
        folder: str = FOLDER,
        more: Mapping[str, str] | None = None,
    ) -> None:
        """Start a program of the job on this host."""
        host.dirty = True
        told = environment(**{"FOLDER": FOLDER, "HOME": FOLDER, "LONG": "900", **(more or {})})
        env = ["env", "-C", folder, *(f"{name}={text}" for name, text in told.items())]
        self.job.start(host.enter([*env, *words], self.user), environment())

    def number(self, host: Host, name: str) -> int:
        """The number in a file of the job; -1 if there is none."""
        with suppress(OSError, ValueError):
            return int(Path(f"/proc/{host.pid}/root{FOLDER}/{name}").read_text())
        return -1

    def steps(self) -> int:
        """Of all ranks."""
        return sum(
            max(0, self.number(host, each.name))
            for host in self.hosts
            for each in Path(f"/proc/{host.pid}/root{FOLDER}").glob("step.*")
        )

    def until(self, true: Callable[[], bool]) -> None:
        end = time.monotonic() + self.patience
        while not true():
            if time.monotonic() > end or any(start.poll() is not None for start in self.job.starts):
                raise NoScene(f"the job did not get there:\n{self.job.text[-3000:]}")
            time.sleep(0.1)

    def until_hit(self, host: Host, rank: int) -> int:
        """Wait for the fault; returns the PID of the rank on its host."""
        self.until(lambda: self.number(host, f"hit.{rank}") > 0)
        return self.number(host, f"hit.{rank}")

    def until_trained(self, hosts: Sequence[Host], ranks: Sequence[int], steps: int = 3) -> None:
        def trained(rank: int) -> bool:
            return max(self.number(host, f"step.{rank}") for host in hosts) >= steps

        self.until(lambda: all(map(trained, ranks)))


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
    words: tuple[str, ...] = ()


def play(lab: Lab, scene: HangScene, number: int, looks: Sequence[SceneLook]) -> Iterator[Outcome]:
    """One job, and these looks at it."""
    owner = OWNERS[number % len(OWNERS)]
    place = ScenePlace(lab, random.Random(f"{scene.name} {number}"), owner)
    began = time.monotonic()
    for host in lab.hosts:
        host.do(f"mkdir -p {FOLDER}; chmod 777 {FOLDER}")
    try:
        with scene.play(place) as truth:
            before = place.steps()
            time.sleep(STANDS)
            for look in looks:
                after = place.steps()
                code, said = _looked(place, scene, look)
                where = f"{owner}'s job, seen by {look.user}, step {place.step}"
                seconds = time.monotonic() - began
                made = held_to(look.sees(truth), look.at(scene), number, where, code, said, seconds)
                yield _gone_on(made, before, after, place) if truth.moves else made
                before = after
    finally:
        place.job.close()
        lab.reset()  # ends whatever the job left, by any name


def _gone_on(made: Outcome, before: int, after: int, place: ScenePlace) -> Outcome:
    """The outcome, and whether the job made steps before the look, during it, and then."""
    during = place.steps()
    time.sleep(STANDS)
    steps = after - before, during - after, place.steps() - during
    said = f"steps before, during and after: {', '.join(map(str, steps))}"
    return replace(made, detected=made.detected and min(steps) > 0, said=(*made.said, said))


def _looked(place: ScenePlace, scene: HangScene, look: SceneLook) -> tuple[int, str]:
    end = time.monotonic() + scene.patience
    hosts = f"node[1-{scene.size}]" if scene.size > 1 else "node1"
    words = ("hang", hosts, "--limit", f"{scene.limit:g}", *scene.words, "--json", "-")
    allow_memory(place.hosts, look.stacks)
    while True:
        done = place.lab.doctor(*words, user=look.user)
        if done.returncode == 1 or time.monotonic() >= end:
            return done.returncode, done.stdout or done.stderr


def allow_memory(hosts: Sequence[Host], runs: bool) -> None:
    """Whether programs in memory, such as py-spy, can run."""
    for host in hosts:
        host.do(RUNS_MEMORY, "0" if runs else "2")


def held_to(
    truth: SceneTruth, name: str, number: int, where: str, code: int, said: str, seconds: float
) -> Outcome:
    """Compare the report with the truth."""

    def outcome(detected: bool, named: bool, alone: bool, words: str) -> Outcome:
        return Outcome(name, number, where, detected, named, alone, None, seconds, code, (words,))

    try:
        report: dict[str, Any] = json.loads(said)
    except ValueError:
        return outcome(False, False, True, f"{name}: {said[-500:]}")
    guilty, suspected = culprits(report), suspects(report)
    line = f"{name}, {where}: {code} {report['headline']} " + "; ".join(
        f"{each['host']} rank {each['rank']} pid {each['pid']}: {each['summary']}"
        for each in (*guilty, *suspected)
    )
    notes = "; ".join(report["hang"]["notes"])
    accused = code == 1 and 1 in truth.codes
    whom = guilty if accused else suspected
    must = truth.codes == (1,) or truth.function
    named = all(_is(each, truth) for each in whom) and (bool(whom) or not must)
    if accused:
        named = named and {each["host"] for each in whom} == truth.hosts
    alone = all(_is(each, truth) for each in guilty) if 1 in truth.codes else not guilty
    return outcome(code in truth.codes, named, alone, f"{line} ({notes})" if notes else line)


def _is(named: Mapping[str, Any], truth: SceneTruth) -> bool:
    if named["host"] not in truth.hosts or truth.says not in named["summary"]:
        return False
    if truth.rank is not None and named["rank"] != truth.rank:
        return False
    stack = [frame["function"].rpartition(".")[2] for frame in named["hang"]["stack"]]
    return (not truth.pids or named["pid"] in truth.pids) and (not truth.function or truth.function in stack)
