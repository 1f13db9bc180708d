"""One trial: a fault is done to the job, and who is named by `doctor slow` is compared with its own clock."""

import json
import os
import random
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from statistics import mean
from threading import Timer
from typing import Any

from doctor.slow.judge import HIDDEN
from tests.lab import Host, Lab
from tests.lab.controller import REPOSITORY
from tests.support.slow.hosts import LabJob
from tests.support.slow.ranks import Step, longer, lost, shared
from tests.trials.outcome import Outcome
from tests.trials.runner import Args, Key
from tests.trials.slow.kinds import SlowKind, done_to

WITHOUT_PYSPY = REPOSITORY / "tests" / "support" / "slow" / "without_pyspy"
NEARLY = 0.05
"""Of two faults whose costs differ by no more than this share of the time, either may be named first."""


@dataclass(frozen=True, slots=True)
class Injected:
    """A fault of a trial."""

    kind: SlowKind
    late: list[int]
    host: Host

    def fits(self, found: dict[str, Any], user: str) -> bool:
        """Whether a finding names the one that this fault makes late, and nobody else."""
        if self.kind.host_only or user != "root":
            there = self.host.name in (*found["hosts"], *found["slow"]["peers"])
            return there and (user != "root" or found["slow"]["lag"] == self.kind.lag)
        called = self.kind.lag in ("late", found["slow"]["lag"])
        return called and len(found["slow"]["ranks"]) > 0 and {*found["slow"]["ranks"]} <= {*self.late}

    def costs(self, steps: dict[int, list[Step]], since: float, beside: list[int], *, link: bool) -> float:
        """The share of the time, by the job's own clock; `link`: whether one is slow."""
        if self.kind.healthy:
            return 0.0
        if self.kind.host_only:
            return shared(steps, since)
        if link:
            return max(longer(steps, each, since) for each in self.late)
        return max(lost(steps, each, since, {*self.late, *beside} - {each}) for each in self.late)


def trial(lab: Lab, job: LabJob, kind: SlowKind, args: Args, keys: Sequence[Key]) -> Iterator[Outcome]:
    ((name, number),) = keys
    drawn = random.Random(f"{name} {number}")
    late = sorted(drawn.sample(range(job.world), kind.ranks)) if not kind.first else [0]
    injected = [Injected(kind, late, job.hosts[late[0] // args.ranks])]
    if kind.beside is not None:
        free = [each for each in range(job.world) if job.hosts[each // args.ranks] is not injected[0].host]
        other = drawn.choice(free)
        injected.append(Injected(kind.beside, [other], job.hosts[other // args.ranks]))
    job.fault("none")
    rows = [
        one.kind.row(
            "-1" if one.kind.healthy or one.kind.everybody else ",".join(map(str, one.late)),
            float(args.base_ms),
            args.scaled,
        )
        for one in injected
    ]
    job.runs()
    with ExitStack() as done_here:
        for one in injected:
            done_here.enter_context(done_to(one.kind, one.host, job.process(one.late[0])))
        begin = Timer(kind.later, job.faults, rows)
        begin.start()
        if not kind.later:
            begin.join()
            job.runs()
        since = time.monotonic()
        nodes = f"node[1-{args.hosts}]" if args.hosts > 1 else "node1"
        words = ["slow", nodes, "--for", args.seconds, "--json", "-"]
        if args.keep:
            args.keep.mkdir(exist_ok=True)
            args.keep.chmod(0o1777)
            words += ["--save", str(args.keep / f"{name} {number}.json.gz".replace(" ", "-"))]
        env = {"PYTHONPATH": str(WITHOUT_PYSPY)} if args.without_pyspy else None
        done = lab.doctor(*words, user=args.user, timeout=800, env=env)
        seconds = time.monotonic() - since
        begin.join()
    if not done.stdout:
        yield Outcome.silent(
            name, number, injected[0].host.name, seconds, done.returncode, done.stderr[-500:]
        )
        return
    said = json.loads(done.stdout)
    steps = {rank: job.truth(rank) for rank in range(job.world)}
    everybody = [each for one in injected for each in one.late if not one.kind.host_only]
    link = any(one.kind.host_only for one in injected)
    costs = [one.costs(steps, since, everybody, link=link) for one in injected]
    found, named, alone = compared(said, injected, costs, args.user)
    yield Outcome(
        name,
        number,
        injected[0].host.name,
        found,
        named,
        alone,
        None,
        seconds,
        done.returncode,
        (*_truth(injected, costs, steps, since), *_words(said, injected, args.user)),
    )


def _truth(
    injected: list[Injected], costs: list[float], steps: dict[int, list[Step]], since: float
) -> Iterator[str]:
    for one, cost in zip(injected, costs, strict=True):
        yield f"late {one.host.name if one.kind.outside else one.late}, {cost:.0%} of the time"
    rows = [row for row in steps[0] if row[0] >= since]
    load = os.getloadavg()[0]
    yield (
        f"{len(rows)} steps of {mean(row[3] - row[0] for row in rows):.3f} s, load {load:.0f}" if rows else ""
    )


def _words(said: dict[str, Any], injected: list[Injected], user: str) -> Iterator[str]:
    for each in said["findings"]:
        slow = each["slow"]
        yield f"{each['headline']}: {slow['lag']}: {each['cause']}: {'; '.join(slow['why'])}"
        causes = [one.kind.cause for one in injected if one.fits(each, user)]
        if causes and each["cause"] not in causes and any(causes):
            yield f"ANOTHER REASON than {' or '.join(causes)}, at {slow['line']}"
    if not said["findings"]:
        yield said["headline"]


def compared(
    said: dict[str, Any], injected: list[Injected], costs: list[float], user: str
) -> tuple[bool, bool, bool]:
    """Whether anybody is named; first the one that costs most, and of the other it is said at least that
    something may be hidden; nobody else.
    """
    findings = said["findings"]
    if injected[0].kind.healthy:
        return not findings, True, not findings
    if not findings:
        return False, False, True
    first = [one for one, cost in zip(injected, costs, strict=True) if cost >= max(costs) - NEARLY]
    hidden = any(HIDDEN in note for note in said["slow"]["notes"])
    named = any(one.fits(findings[0], user) for one in first)
    named = named and (len(injected) == 1 or len(findings) > 1 or hidden)
    return True, named, all(any(one.fits(each, user) for one in injected) for each in findings)
