"""One trial: a job goes wrong at a drawn rank and step; what does `doctor hang` say of it?"""

from __future__ import annotations

import json
import random
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from tests.lab import Host, Lab
from tests.lab.slurm import Slurm
from tests.support.injob import Job
from tests.trials.hang.kinds import KINDS, Kind
from tests.trials.hang.launchers import FOLDER, LAUNCHERS, Start
from tests.trials.outcome import Outcome

PATIENCE = 180.0
STANDS = 3.0
"""Seconds after the fault began: then nobody moves any more."""


@dataclass(frozen=True, slots=True)
class Site:
    """Where trials take place."""

    lab: Lab
    slurm: Slurm | None
    ranks: int
    """On each host."""

    def clear(self, job: Job) -> None:
        """End everything that a trial started."""
        job.close()
        for host in self.lab.hosts:
            host.do(f"pkill -KILL -f '[t]rials/hang/training.py' || :; rm -rf {FOLDER}")
        if self.slurm is not None:
            self.slurm.run(["scancel", "--user=root"])
            self.slurm.await_nodes()


def trial(site: Site, launcher: str, mode: str, fault: str, number: int) -> Outcome:
    kind, drawn = KINDS[fault], random.Random(f"{mode} {fault} {number}")
    lab, ranks, hosts = site.lab, site.ranks, site.lab.hosts
    victim, at = drawn.randrange(len(hosts) * ranks), drawn.randrange(5, 40)
    env = {"MODE": mode, "FAULT": fault, "VICTIM": str(victim), "AT": str(at)}
    start = Start(lab, site.slurm, ranks, drawn.randrange(20_000, 30_000), "root", env)
    job, began = Job(), time.monotonic()
    try:
        for host in hosts:
            host.do(f"mkdir -p {FOLDER}; mkfifo {FOLDER}/fifo")
        LAUNCHERS[launcher](job, start)
        home = hosts[victim // ranks]
        _until(lambda: _read(home, "hit") == 1 if kind.hits else _step(hosts) >= at, job)
        time.sleep(STANDS if kind.hits else 0)
        words = ("hang", f"node[1-{len(hosts)}]", "--limit", f"{kind.limit:g}", "--json", "-")
        place = f"{launcher}, rank {victim}, step {at}"
        for _ in range(kind.looks):
            done = lab.doctor(*words)
            outcome = held(
                kind, f"{mode} {fault}", number, place, done.returncode, done.stdout, home.name, victim, began
            )
            if not outcome.right:
                break
        return outcome
    finally:
        site.clear(job)


def _read(host: Host, name: str) -> int:
    with suppress(OSError, ValueError):
        return int(Path(f"/proc/{host.pid}/root{FOLDER}/{name}").read_text())
    return -1


def _step(hosts: Sequence[Host]) -> int:
    return _read(hosts[0], "step.0")


def _until(true: Callable[[], bool], job: Job) -> None:
    end = time.monotonic() + PATIENCE
    while not true():
        if time.monotonic() > end or any(start.poll() is not None for start in job.starts):
            raise SystemExit(f"the job did not get there:\n{job.text[-2000:]}")
        time.sleep(0.1)


def held(
    kind: Kind, fault: str, number: int, place: str, code: int, said: str, host: str, rank: int, began: float
) -> Outcome:
    """What was said, held against the truth."""
    seconds = time.monotonic() - began
    try:
        report = json.loads(said)
    except ValueError:
        return Outcome(fault, number, place, False, False, False, None, seconds, code, (said[-500:],))
    guilty = report["culprits"]
    line = f"{fault} {place}: {code} {report['verdict']}: {report['summary']} " + "; ".join(
        f"rank {each['rank']} on {each['host']} {each['cause']} at {each['place']}" for each in guilty
    )
    if kind.cause is None:
        fine = code == kind.code
        return Outcome(fault, number, place, fine, fine, not guilty, None, seconds, code, (line,))
    mine = [each for each in guilty if (each["rank"], each["host"]) == (rank, host)]
    stacks = [frame["function"] for each in mine for frame in each["stack"]]
    told = any(each["cause"] == kind.cause.value for each in mine) and (
        not kind.function or kind.function in stacks
    )
    return Outcome(
        fault, number, place, code == kind.code, told, guilty == mine, None, seconds, code, (line,)
    )
