"""`python -m tests.trials`: every fault of the smoke run, at a drawn rank and step, and healthy runs."""

import argparse
import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import partial

from benchmarks.table import kernel
from doctor import __version__
from tests.lab import Lab, missing
from tests.trials.kinds import HEALTHY, INSIDE, NOT_JUDGED, ORDER, OUTSIDE, STAGED, fault_of
from tests.trials.outcome import Outcome
from tests.trials.run import HOGS, Field, healthy, trial
from tests.trials.runner import Args, Case, Cases, Key, Series, main


def options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--healthy", type=int, default=0, help="healthy runs, half of them beside CPU hogs")
    parser.add_argument("--hosts", type=int, default=4)
    parser.add_argument("--ranks", type=int, default=2, help="on each host")
    parser.add_argument("--plan", default="", help="the job's plan: faults of calls draw a group")
    parser.add_argument("--steps", type=int, default=30)
    parser.add_argument("--framework", choices=("torch", "mindspore"), default="torch")
    parser.add_argument("--python", default=sys.executable, help="the interpreter that has it")
    parser.add_argument("--hogs", type=int, default=HOGS, help="beside every other healthy run")


def lacks(args: Args) -> str | None:
    asked = [word for word in NOT_JUDGED.get(args.framework, ()) if word in args.kinds]
    return f"a run with {args.framework} does not judge {', '.join(asked)}" if asked else missing()


def usual(args: Args) -> list[str]:
    left_out = (*NOT_JUDGED.get(args.framework, ()), *(() if "pp=" in args.plan else STAGED))
    return [word for word in (*INSIDE, *OUTSIDE) if word not in left_out]


def cases(args: Args) -> Cases:
    with Lab(args.hosts, data=True) as lab:
        field = Field(
            lab,
            args.ranks,
            args.steps,
            tp=1 if args.ranks % 2 else 2,
            python=args.python,
            limit=180 if args.framework == "torch" else 360,
            framework=args.framework,
            plan=args.plan,
        )
        for number in range(args.trials):
            for word in args.kinds:
                fault = fault_of(word)
                make = partial(trial, field, fault, number)
                yield Case([(fault.name, number)], partial(judged, args, field, make))
        for number in range(args.healthy):
            beside = args.hogs * (number % 2)
            make = partial(healthy, field, number, beside)
            yield Case([(HEALTHY[beside > 0], number)], partial(judged, args, field, make))


def judged(args: Args, field: Field, make: Callable[[], Outcome], _: Sequence[Key]) -> Iterator[Outcome]:
    """The recording of a run that was not judged rightly is kept."""
    outcome = make()
    if not outcome.right and field.recording.exists():
        name = f"{outcome.fault.rstrip(' *').replace(' ', '-')}-{outcome.number}.json"
        shutil.copy(field.recording, args.out.with_name(f"{args.out.stem}-{name}"))
    yield outcome


def conditions(args: Args) -> str:
    backend = "gloo" if args.framework == "torch" else "mccl"
    ask = f"import importlib.metadata as m; print(m.version({args.framework!r}))"
    version = subprocess.run([args.python, "-c", ask], check=True, capture_output=True, text=True).stdout
    ranks = f"{args.ranks} ranks" + (f" as {args.plan}" if args.plan else "")
    return (
        f"{args.hosts} hosts (namespaces, each with its own sshd, a second network for the ranks) × "
        f"{ranks}, {args.steps} steps, {backend}, and the controller, "
        f"on one machine with {os.cpu_count()} cores, {kernel()}.\n"
        f"cluster-doctor {__version__}, Python {platform.python_version()}, "
        f"{args.framework} {version.strip()}.\n"
        "The victim and the step are drawn at random for each trial. Right is a trial in which the fault was "
        "found, the culprit's host and rank were named, and nobody else was blamed; the intervals are those "
        "of Clopper and Pearson. Latency is the time from the fault to the decision to end the run; a fault "
        "without one is reported at its end. Faults marked * come from outside the run.\n\n"
    )


SERIES = Series(
    "tests.trials",
    "trials.jsonl",
    kinds=(*INSIDE, *OUTSIDE),
    cases=cases,
    options=options,
    lacks=lacks,
    usual=usual,
    head=conditions,
    order=ORDER,
)
if __name__ == "__main__":
    sys.exit(main(SERIES, __doc__))
