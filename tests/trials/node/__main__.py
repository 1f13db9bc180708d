"""`python -m tests.trials.node`: the requested number of runs of each situation, and their table.

A run that was cut short goes on. `--table` prints the page docs/proof/node.md.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Collection, Iterator, Sequence
from contextlib import closing
from pathlib import Path

from doctor.errors import EXIT_INCONCLUSIVE, EXIT_OK
from tests.lab import Lab, missing
from tests.lab.errors import LabError
from tests.lab.slurm import missing as no_slurm
from tests.trials.node.boxes import BOXES
from tests.trials.node.busy import BUSY
from tests.trials.node.cards import CARDS
from tests.trials.node.jobs import JOBS
from tests.trials.node.look import look
from tests.trials.node.odd import ODD
from tests.trials.node.page import page
from tests.trials.node.situation import HOSTS, Situation, Stage
from tests.trials.node.slurm import SLURM
from tests.trials.outcome import Outcome, append, load

GROUPS = (BUSY, BOXES, JOBS, ODD, CARDS, SLURM)
LOOKS = 4
"""So many runs each time that a situation is made."""


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.trials.node", description=__doc__)
    parser.add_argument("--kinds", default="", help="those whose name contains one of these words, by commas")
    parser.add_argument("--trials", type=int, default=7, help="so many runs of each")
    parser.add_argument("--out", type=Path, default=Path("node-trials.jsonl"), help="added to line by line")
    parser.add_argument("--table", action="store_true", help="no trials, only the table of those there are")
    args = parser.parse_args()
    wanted = [word for word in args.kinds.split(",") if word]
    chosen = [
        each for group in GROUPS for each in group if not wanted or any(word in each.name for word in wanted)
    ]
    outcomes = load(args.out)
    if not args.table:
        if reason := missing():
            print(f"No trials: {reason}.", file=sys.stderr)
            return 2
        outcomes += _trials(chosen, args.trials, {(each.fault, each.number) for each in outcomes}, args.out)
    print(page(outcomes, GROUPS))
    return 0 if all(outcome.code in (EXIT_OK, EXIT_INCONCLUSIVE) for outcome in outcomes) else 1


def _trials(
    chosen: Sequence[Situation], trials: int, done: Collection[tuple[str, int]], out: Path
) -> Iterator[Outcome]:
    """In turn, so that a run that is cut short has some of each."""
    of_slurm = [each for each in chosen if each.name in SLURM.made]
    if of_slurm and (why := no_slurm()):
        print(f"No trial beside a step of Slurm: {why}.", file=sys.stderr, flush=True)
        of_slurm = []
    own = [each for each in chosen if each.name not in SLURM.made]
    with Lab(len(HOSTS)) as lab, closing(Stage.on(lab)) as stage:
        for part in (own, of_slurm):
            for first in range(0, trials, LOOKS):
                for situation in part:
                    numbers = range(first, min(first + LOOKS, trials))
                    if left := [number for number in numbers if (situation.name, number) not in done]:
                        yield from _looks(stage, situation, left, out)


def _looks(stage: Stage, situation: Situation, numbers: Sequence[int], out: Path) -> Iterator[Outcome]:
    try:
        inside = situation.act(stage)
        for number in numbers:
            way = situation.ways[number % len(situation.ways)]
            outcome = look(stage, situation, inside, number, way)
            append(out, outcome)
            mark = "right" if outcome.right else "WRONG"
            said = (mark, outcome.fault, way, f"{outcome.seconds:.1f} s", f"code {outcome.code}")
            print(*said, *outcome.said, sep="  ", file=sys.stderr, flush=True)
            yield outcome
    except LabError as why:
        print(f"No trial of {situation.name}: {why}", file=sys.stderr, flush=True)
    finally:
        stage.reset()


if __name__ == "__main__":
    sys.exit(main())
