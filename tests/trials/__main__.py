"""`python -m tests.trials`: runs the requested number of trials of each fault, and prints their table."""

from __future__ import annotations

import argparse
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

from tests.lab import Lab, missing
from tests.trials.kinds import INSIDE, NOT_JUDGED, OUTSIDE, fault_of, order
from tests.trials.outcome import Outcome, append, load
from tests.trials.run import HOGS, Field, healthy, trial
from tests.trials.table import conditions, table


def main() -> int:
    args = _arguments()
    earlier = load(args.out)
    if not args.table:
        if reason := missing():
            print(f"No trials: {reason}.", file=sys.stderr)
            return 2
        earlier += _hold(args, earlier)
    print(conditions(args.hosts, args.ranks, args.steps, args.framework, args.python), end="\n\n")
    print(table(earlier, order()))
    return 0 if all(outcome.right for outcome in earlier) else 1


def _arguments() -> argparse.Namespace:
    known = [*INSIDE, *OUTSIDE]
    parser = argparse.ArgumentParser(prog="python -m tests.trials", description=__doc__)
    parser.add_argument("--faults", default="all", help=f"all, none, or some of {','.join(known)}")
    parser.add_argument("--trials", type=int, default=20, help="so many of each fault, earlier ones included")
    parser.add_argument("--healthy", type=int, default=0, help="healthy runs, half of them beside CPU hogs")
    parser.add_argument("--hosts", type=int, default=4)
    parser.add_argument("--ranks", type=int, default=2, help="on each host")
    parser.add_argument("--steps", type=int, default=30)
    parser.add_argument("--framework", choices=("torch", "mindspore"), default="torch")
    parser.add_argument("--python", default=sys.executable, help="the interpreter that has it")
    parser.add_argument("--hogs", type=int, default=HOGS, help="beside every other healthy run")
    parser.add_argument(
        "--out", type=Path, default=Path("trials.jsonl"), help="outcomes, added to line by line"
    )
    parser.add_argument("--table", action="store_true", help="no trials, only the table of those there are")
    args = parser.parse_args()
    lacking = NOT_JUDGED.get(args.framework, ())
    fitting = [word for word in known if word not in lacking]
    args.faults = {"all": fitting, "none": []}.get(args.faults, args.faults.split(","))
    if asked := [word for word in args.faults if word in lacking]:
        parser.error(f"a run with {args.framework} does not judge {', '.join(asked)}")
    if unknown := [word for word in args.faults if word not in known]:
        parser.error(f"no such fault: {', '.join(unknown)}; there are {', '.join(known)}")
    return args


def _hold(args: argparse.Namespace, earlier: Sequence[Outcome]) -> list[Outcome]:
    """Use one lab for all trials, and try the faults in turn, so that a run that is cut short has results for
    each.
    """
    held: list[Outcome] = []
    done = {(outcome.fault, outcome.number) for outcome in earlier}

    def note(outcome: Outcome) -> None:
        append(args.out, outcome)
        held.append(outcome)
        if not outcome.right and field.recording.exists():
            name = f"{outcome.fault.rstrip(' *').replace(' ', '-')}-{outcome.number}.json"
            shutil.copy(field.recording, args.out.with_name(f"{args.out.stem}-{name}"))
        mark = "right" if outcome.right else "WRONG"
        said = "" if outcome.right else f": {'; '.join(outcome.said) or 'nothing was found'}"
        print(
            f"{mark} {outcome.fault} {outcome.place} {outcome.seconds:.1f} s{said}",
            file=sys.stderr,
            flush=True,
        )

    with Lab(args.hosts, data=True) as lab:
        field = Field(
            lab,
            args.ranks,
            args.steps,
            tp=1 if args.ranks % 2 else 2,
            python=args.python,
            limit=180 if args.framework == "torch" else 360,
            framework=args.framework,
        )
        for number in range(args.trials):
            for word in args.faults:
                fault = fault_of(word)
                if (fault.name, number) not in done:
                    note(trial(field, fault, number))
        for number in range(args.healthy):
            beside = args.hogs * (number % 2)
            name = "healthy beside hogs" if beside else "healthy"
            if (name, number) not in done:
                note(healthy(field, number, beside))
    return held


if __name__ == "__main__":
    sys.exit(main())
