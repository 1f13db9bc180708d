"""`python -m tests.trials.slow`: the requested number of trials of each fault of one job, and their table.

Each line that is written has the share of the time that was lost by the job's own clock, beside the one that
was reported. A run that was cut short goes on.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from statistics import mean
from threading import Timer
from typing import Any

from doctor.slow.judge import HIDDEN
from tests.lab import Host, Lab, missing
from tests.lab.controller import REPOSITORY
from tests.support.slow.hosts import LabJob, training
from tests.support.slow.ranks import Step, longer, lost, shared
from tests.trials.outcome import Outcome, append, load
from tests.trials.slow.kinds import KINDS, LINKS, PAIRS, SlowKind, done_to
from tests.trials.table import table

WITHOUT_PYSPY = REPOSITORY / "tests" / "support" / "slow" / "without_pyspy"
BASE_MS = "60"
NEARLY = 0.05
"""Of two faults whose costs differ by no more than this share of the time, either may be named first."""


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.trials.slow", description=__doc__)
    parser.add_argument("--faults", help=f"some of {','.join(KINDS)}; stage is one of a pipeline")
    parser.add_argument("--trials", type=int, default=20, help="so many of each fault")
    parser.add_argument("--kind", default="ddp", help="as the job has it: plain, ddp, fsdp, trainer, mpi...")
    parser.add_argument("--hosts", type=int, default=4)
    parser.add_argument("--ranks", type=int, default=1, help="on each host")
    parser.add_argument("--base-ms", default=BASE_MS, help="how long a step sleeps")
    parser.add_argument("--scaled", action="store_true", help="longer faults for longer steps")
    parser.add_argument("--without-pyspy", action="store_true")
    parser.add_argument("--seconds", default="10", help="--for")
    parser.add_argument("--user", default="root", help="who looks")
    parser.add_argument("--keep", type=Path, help="a folder for what was seen, as --save writes it")
    parser.add_argument("--out", type=Path, default=Path("slow-trials.jsonl"), help="added to line by line")
    args = parser.parse_args()
    of_all = [word for word in KINDS if word not in PAIRS]
    no_such = {*("stage",) * (args.kind != "pipeline"), *(LINKS if args.hosts == 1 else ())}
    all_of_them = [word for word in of_all if word not in no_such]
    wanted = args.faults.split(",") if args.faults else all_of_them
    if unknown := [word for word in wanted if word not in KINDS]:
        parser.error(f"no such fault: {', '.join(unknown)}")
    if reason := missing():
        print(f"No trials: {reason}.", file=sys.stderr)
        return 2
    setting = f"{args.kind} {args.hosts}x{args.ranks} {args.user}" + " without py-spy" * args.without_pyspy
    setting += f" {args.base_ms} ms" * (args.base_ms != BASE_MS)
    outcomes = load(args.out)
    done = {(each.fault, each.number) for each in outcomes}
    left = [
        (f"{setting} {fault}", fault, number)
        for number in range(args.trials)  # in turn, so that a run that is cut short has some trials of each
        for fault in wanted
        if (f"{setting} {fault}", number) not in done
    ]
    with Lab(args.hosts) as lab:
        hosts = list(lab)
        own = os.pathsep.join(filter(None, (str(REPOSITORY), os.environ.get("PYTHONPATH"))))
        with training(hosts, args.ranks, KIND=args.kind, BASE_MS=args.base_ms, PYTHONPATH=own) as job:
            for name, fault, number in left:
                outcome = trial(lab, job, KINDS[fault], name, number, args)
                append(args.out, outcome)
                outcomes.append(outcome)
                print(name, outcome.right, *outcome.said, sep="  ", file=sys.stderr, flush=True)
    order = [*dict.fromkeys(each.fault for each in outcomes)]
    print(table(outcomes, order))
    print(f"{len(outcomes)} trials; {sum(each.right for each in outcomes)} right")
    return 0 if all(outcome.right for outcome in outcomes) else 1


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


def trial(lab: Lab, job: LabJob, kind: SlowKind, name: str, number: int, args: argparse.Namespace) -> Outcome:
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
        raise SystemExit(f"{name}: no report: {done.stderr}")
    said = json.loads(done.stdout)
    steps = {rank: job.truth(rank) for rank in range(job.world)}
    everybody = [each for one in injected for each in one.late if not one.kind.host_only]
    link = any(one.kind.host_only for one in injected)
    costs = [one.costs(steps, since, everybody, link=link) for one in injected]
    found, named, alone = compared(said, injected, costs, args.user)
    return Outcome(
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


if __name__ == "__main__":
    sys.exit(main())
