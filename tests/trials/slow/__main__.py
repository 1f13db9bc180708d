"""`python -m tests.trials.slow`: the faults of one job of the lab, one after another.

Each outcome says the share of the time that was lost by the job's own clock, beside what was reported.
"""

import argparse
import os
import sys
from functools import partial
from pathlib import Path

from tests.lab import Lab
from tests.lab.controller import REPOSITORY
from tests.support.slow.hosts import training
from tests.trials.runner import Args, Case, Cases, Series, main
from tests.trials.slow.kinds import KINDS
from tests.trials.slow.run import trial

BASE_MS = "60"


def options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--kind", default="ddp", help="as the job has it: plain, ddp, fsdp, trainer, mpi...")
    parser.add_argument("--hosts", type=int, default=4)
    parser.add_argument("--ranks", type=int, default=1, help="on each host")
    parser.add_argument("--base-ms", default=BASE_MS, help="how long a step sleeps")
    parser.add_argument("--scaled", action="store_true", help="longer faults for longer steps")
    parser.add_argument("--without-pyspy", action="store_true")
    parser.add_argument("--seconds", default="10", help="--for")
    parser.add_argument("--user", default="root", help="who looks")
    parser.add_argument("--keep", type=Path, help="a folder for what was seen, as --save writes it")


def usual(args: Args) -> list[str]:
    """One fault at a time, which a job of this kind on these hosts can have."""
    return [
        name
        for name, kind in KINDS.items()
        if not kind.beside
        and (args.hosts > 1 or not kind.host_only)
        and (args.kind == "pipeline" or not kind.pipeline)
    ]


def cases(args: Args) -> Cases:
    setting = f"{args.kind} {args.hosts}x{args.ranks} {args.user}" + " without py-spy" * args.without_pyspy
    setting += f" {args.base_ms} ms" * (args.base_ms != BASE_MS)
    own = os.pathsep.join(filter(None, (str(REPOSITORY), os.environ.get("PYTHONPATH"))))
    with (
        Lab(args.hosts) as lab,
        training([*lab], args.ranks, KIND=args.kind, BASE_MS=args.base_ms, PYTHONPATH=own) as job,
    ):
        for number in range(args.trials):
            for kind in args.kinds:
                make = partial(trial, lab, job, KINDS[kind], args)
                yield Case([(f"{setting} {kind}", number)], make)


def is_fault(name: str) -> bool:
    return not KINDS[name.rpartition(" ")[2]].healthy


SERIES = Series(
    "tests.trials.slow",
    "slow-trials.jsonl",
    kinds=tuple(KINDS),
    cases=cases,
    options=options,
    usual=usual,
    is_fault=is_fault,
)
if __name__ == "__main__":
    sys.exit(main(SERIES, __doc__))
