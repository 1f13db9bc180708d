"""`python -m tests.trials.command`: a training under `doctor run` with a drawn fault, or without one."""

import argparse
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from functools import partial

from tests.trials.command.hosts import by_srun, by_torchrun_on_hosts
from tests.trials.command.kinds import KINDS, Draw
from tests.trials.command.run import LAUNCHERS, seen_here
from tests.trials.command.seen import Seen, judged
from tests.trials.outcome import Outcome
from tests.trials.runner import Args, Case, Cases, Key, Series, main

ON_HOSTS = {"torchrun on hosts": by_torchrun_on_hosts, "srun": by_srun}
EVERY = (*LAUNCHERS, *ON_HOSTS)


def options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--launchers", default="torchrun", help=f"some of {','.join(EVERY)}")


def lacks(args: Args) -> str | None:
    unknown = [word for word in args.launchers.split(",") if word not in EVERY]
    return f"there is no launcher {', '.join(unknown)}" if unknown else None


def cases(args: Args) -> Cases:
    with ExitStack() as labs:
        ways = {
            name: labs.enter_context(ON_HOSTS[name]()) if name in ON_HOSTS else seen_here
            for name in args.launchers.split(",")
        }
        for number in range(args.trials):
            for launcher, way in ways.items():
                for name in args.kinds:
                    draw = Draw(name, launcher, number)
                    if launcher in (draw.kind.launchers or EVERY):
                        yield Case([(draw.row, number)], partial(tried, draw, way))


def tried(draw: Draw, way: Callable[[Draw], Seen], _: Sequence[Key]) -> Iterator[Outcome]:
    began = time.monotonic()
    yield judged(draw, way(draw), time.monotonic() - began)


def is_fault(row: str) -> bool:
    """Whether somebody else than the program ends it."""
    return bool(KINDS[row.partition(", ")[0]].ends)


SERIES = Series(
    "tests.trials.command",
    "run-trials.jsonl",
    kinds=tuple(KINDS),
    cases=cases,
    options=options,
    trials=10,
    lacks=lacks,
    order=tuple(f"{name}, {launcher}" for launcher in EVERY for name in KINDS),
    is_fault=is_fault,
)
if __name__ == "__main__":
    sys.exit(main(SERIES, __doc__))
