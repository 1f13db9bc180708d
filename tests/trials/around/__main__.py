"""`python -m tests.trials.around`: the requested number of trials of each kind, and their table."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from tests.trials.around.run import KINDS, trial
from tests.trials.outcome import append, load
from tests.trials.table import table


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.trials.around", description=__doc__)
    parser.add_argument("--faults", default=",".join(KINDS), help=f"some of {','.join(KINDS)}")
    parser.add_argument("--trials", type=int, default=10, help="so many of each")
    parser.add_argument("--out", type=Path, default=Path("run-trials.jsonl"), help="added to line by line")
    args = parser.parse_args()
    wanted = args.faults.split(",")
    if unknown := [word for word in wanted if word not in KINDS]:
        parser.error(f"no such fault: {', '.join(unknown)}")
    outcomes = load(args.out)
    done = {(each.fault, each.number) for each in outcomes}
    for number in range(args.trials):  # in turn, so that a run that is cut short has some trials of each
        for name in wanted:
            if (name, number) in done:
                continue
            outcome = trial(name, number)
            append(args.out, outcome)
            outcomes.append(outcome)
            print(
                name,
                number,
                outcome.right,
                outcome.code,
                *outcome.said,
                sep="  ",
                file=sys.stderr,
                flush=True,
            )
    print(f"{len(outcomes)} trials.\n\n{table(outcomes, list(KINDS))}")
    return 0 if all(outcome.right for outcome in outcomes) else 1


if __name__ == "__main__":
    sys.exit(main())
