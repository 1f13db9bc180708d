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
from pathlib import Path
from statistics import mean
from threading import Timer
from typing import Any

from tests.lab import Lab, missing
from tests.lab.controller import REPOSITORY
from tests.support.slow.hosts import LabJob, training
from tests.support.slow.ranks import lost
from tests.trials.outcome import Outcome, append, load
from tests.trials.slow.kinds import KINDS, SlowKind, done_to
from tests.trials.table import table

WITHOUT_PYSPY = REPOSITORY / "tests" / "support" / "slow" / "without_pyspy"
BASE_MS = "60"


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
    parser.add_argument("--out", type=Path, default=Path("slow-trials.jsonl"), help="added to line by line")
    args = parser.parse_args()
    all_of_them = [word for word in KINDS if word != "stage" or args.kind == "pipeline"]
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


def trial(lab: Lab, job: LabJob, kind: SlowKind, name: str, number: int, args: argparse.Namespace) -> Outcome:
    drawn = random.Random(f"{name} {number}")
    late = sorted(drawn.sample(range(job.world), kind.ranks)) if not kind.first else [0]
    ranks = "-1" if kind.healthy or kind.everybody else ",".join(map(str, late))
    host = job.hosts[late[0] // args.ranks]
    job.fault("none")
    ms = kind.ms if kind.ms >= 1 else kind.ms * float(args.base_ms)
    ms = max(ms, kind.ms * float(args.base_ms) / 60) if args.scaled else ms
    with done_to(kind, host, job.process(late[0])):
        begin = Timer(kind.later, job.fault, (kind.fault, ranks, ms))
        begin.start()
        if not kind.later:
            begin.join()
            job.runs()
        since = time.monotonic()
        nodes = f"node[1-{args.hosts}]" if args.hosts > 1 else "node1"
        words = ("slow", nodes, "--for", args.seconds, "--json", "-")
        env = {"PYTHONPATH": str(WITHOUT_PYSPY)} if args.without_pyspy else None
        done = lab.doctor(*words, user=args.user, timeout=800, env=env)
        seconds = time.monotonic() - since
        begin.join()
    if not done.stdout:
        raise SystemExit(f"{name}: no report: {done.stderr}")
    said = json.loads(done.stdout)
    steps = {rank: job.truth(rank) for rank in range(job.world)}
    true = mean(lost(steps, rank, since) for rank in late) if not kind.healthy else 0.0
    named, alone = compared(said, late, host.name, kind, args.user)
    words = (
        f"late {late if not kind.outside else host.name}, {true:.0%} of the time",
        *(
            f"{each['headline']}: {each['slow']['lag']}: {each['cause']}: {'; '.join(each['slow']['why'])}"
            for each in said["findings"]
        ),
        *(f"at {each['slow']['line']}" for each in said["findings"] if kind.cause not in ("", each["cause"])),
        *([] if said["findings"] else [said["headline"]]),
    )
    found = not said["findings"] if kind.healthy else bool(said["findings"])
    return Outcome(
        name, number, host.name, found, named or kind.healthy, alone, None, seconds, done.returncode, words
    )


def compared(
    said: dict[str, Any], late: list[int], host: str, kind: SlowKind, user: str
) -> tuple[bool, bool]:
    """Whether the right ones are named, and nobody else."""
    if kind.healthy or not said["findings"]:
        return False, not said["findings"]
    (found,) = said["findings"]
    if kind.host_only or user != "root":
        there = host in (*found["hosts"], *found["slow"]["peers"])
        return there and (user != "root" or found["slow"]["lag"] == kind.lag), there
    ranks, called = found["slow"]["ranks"], kind.lag in ("late", found["slow"]["lag"])
    return bool({*ranks} & {*late}) and called, {*ranks} <= {*late}


if __name__ == "__main__":
    sys.exit(main())
