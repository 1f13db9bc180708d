"""A scene: a job starts on hosts of the lab, something goes wrong or only seems to, and doctor reports."""

from __future__ import annotations

import json
import random
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, field
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


@dataclass(slots=True)
class ScenePlace:
    """Where a scene plays: the lab, and what is drawn for this trial."""

    lab: Lab
    lot: random.Random
    user: str = "root"
    job: Job = field(default_factory=Job)
    port: int = 0
    step: int = 0

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
        told = environment(FOLDER=FOLDER, LONG="900", **(more or {}))
        env = ["env", "-C", folder, *(f"{name}={text}" for name, text in told.items())]
        self.job.start(host.enter([*env, *words], self.user), environment())

    def number(self, host: Host, name: str) -> int:
        """The number in a file of the job; -1 if there is none."""
        with suppress(OSError, ValueError):
            return int(Path(f"/proc/{host.pid}/root{FOLDER}/{name}").read_text())
        return -1

    def until(self, true: Callable[[], bool]) -> None:
        end = time.monotonic() + PATIENCE
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


def play(lab: Lab, scene: HangScene, number: int, user: str) -> Outcome:
    place = ScenePlace(lab, random.Random(f"{scene.name} {number}"), user)
    began = time.monotonic()
    for host in lab.hosts:
        host.do(f"mkdir -p {FOLDER}; chmod 777 {FOLDER}")
    try:
        with scene.play(place) as truth:
            time.sleep(STANDS)
            code, said = _looked(place, scene)
            where = f"{user}, step {place.step}"
            return held_to(truth, scene.name, number, where, code, said, time.monotonic() - began)
    finally:
        place.job.close()
        lab.reset()  # ends whatever the job left, by any name


def _looked(place: ScenePlace, scene: HangScene) -> tuple[int, str]:
    end = time.monotonic() + scene.patience
    hosts = f"node[1-{scene.size}]" if scene.size > 1 else "node1"
    words = ("hang", hosts, "--limit", f"{scene.limit:g}", *scene.words, "--json", "-")
    while True:
        done = place.lab.doctor(*words, user=place.user)
        if done.returncode == 1 or time.monotonic() >= end:
            return done.returncode, done.stdout or done.stderr


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
    detected = code in truth.codes
    accused = truth.codes == (1,)
    whom = guilty if accused else suspected
    named = all(_is(each, truth) for each in whom) and (bool(whom) or not (accused or truth.function))
    if accused:
        named = named and {each["host"] for each in whom} == truth.hosts
    alone = all(_is(each, truth) for each in guilty) if accused else not guilty
    return outcome(detected, named, alone, f"{line} ({notes})" if notes else line)


def _is(named: Mapping[str, Any], truth: SceneTruth) -> bool:
    if named["host"] not in truth.hosts or truth.says not in named["summary"]:
        return False
    if truth.rank is not None and named["rank"] != truth.rank:
        return False
    stack = [frame["function"].rpartition(".")[2] for frame in named["hang"]["stack"]]
    return (not truth.pids or named["pid"] in truth.pids) and (not truth.function or truth.function in stack)
