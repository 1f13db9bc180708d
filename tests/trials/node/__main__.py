"""`python -m tests.trials.node`: the exam `node` on sound hosts, in every situation: docs/proof/node.md."""

import sys
from collections.abc import Iterator, Sequence
from contextlib import closing
from functools import partial

from tests.lab import Lab
from tests.lab.slurm import missing as no_slurm
from tests.trials.node.acts import made
from tests.trials.node.look import look
from tests.trials.node.page import page
from tests.trials.node.situation import GROUPS, HOSTS, Situation, Stage
from tests.trials.outcome import Outcome
from tests.trials.runner import Args, Case, Cases, Key, Series, main

SITUATIONS = {each.name: each for group in GROUPS for each in group.situations}
LOOKS = 4
"""So many runs each time that a situation is made."""


def cases(args: Args) -> Cases:
    """Those of Slurm last, since only they may follow its first job."""
    chosen = [SITUATIONS[name] for name in args.kinds]
    own, of_slurm = ([each for each in chosen if bool(each.step) is slurm] for slurm in (False, True))
    if of_slurm and (why := no_slurm()):
        print(f"No trial beside a step of Slurm: {why}.", file=sys.stderr, flush=True)
        of_slurm = []
    with Lab(len(HOSTS)) as lab, closing(Stage.on(lab)) as stage:
        for part in (own, of_slurm):
            for first in range(0, args.trials, LOOKS):
                numbers = range(first, min(first + LOOKS, args.trials))
                for each in part:
                    yield Case([(each.name, number) for number in numbers], partial(looked, stage, each))


def looked(stage: Stage, situation: Situation, keys: Sequence[Key]) -> Iterator[Outcome]:
    try:
        inside = made(stage, situation)
        for _, number in keys:
            way = situation.ways[number % len(situation.ways)]
            yield look(stage, situation, inside, number, way)
    finally:
        stage.reset()


SERIES = Series(
    "tests.trials.node",
    "node-trials.jsonl",
    kinds=tuple(SITUATIONS),
    cases=cases,
    trials=7,
    page=lambda outcomes: page(outcomes, GROUPS),
)
if __name__ == "__main__":
    sys.exit(main(SERIES, __doc__))
