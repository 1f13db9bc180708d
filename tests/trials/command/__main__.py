"""`python -m tests.trials.command`: the requested number of trials of each kind, and their table."""

from __future__ import annotations

import argparse
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

from tests.trials.command.hosts import by_srun, by_torchrun_on_hosts
from tests.trials.command.kinds import KINDS, Draw
from tests.trials.command.run import LAUNCHERS, seen_here
from tests.trials.command.seen import Seen, judged
from tests.trials.outcome import Outcome, append, load
from tests.trials.table import table

ON_HOSTS = {"torchrun on hosts": by_torchrun_on_hosts, "srun": by_srun}


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.trials.command", description=__doc__)
    every = [*LAUNCHERS, *ON_HOSTS]
    parser.add_argument("--faults", default=",".join(KINDS), help=f"some of {','.join(KINDS)}")
    parser.add_argument("--launchers", default="torchrun", help=f"some of {','.join(every)}")
    parser.add_argument("--trials", type=int, default=10, help="so many of each")
    parser.add_argument("--out", type=Path, default=Path("run-trials.jsonl"), help="added to line by line")
    args = parser.parse_args()
    wanted, by = args.faults.split(","), args.launchers.split(",")
    if unknown := [word for word in wanted if word not in KINDS] + [word for word in by if word not in every]:
        parser.error(f"no such fault or launcher: {', '.join(unknown)}")
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell ignores it for what it starts with &
    with ExitStack() as labs:
        ways: dict[str, Callable[[Draw], Seen]] = {
            name: labs.enter_context(ON_HOSTS[name]()) if name in ON_HOSTS else seen_here for name in by
        }
        for number in range(args.trials):  # in turn, so that a run that is cut short has some of each
            for launcher, way in ways.items():
                for name in [each for each in wanted if launcher in (KINDS[each].launchers or every)]:
                    _try(Draw(name, launcher, number), way, args.out)
    outcomes = load(args.out)
    order = [f"{name}, {launcher}" for launcher in every for name in KINDS]
    print(f"{len(outcomes)} trials.\n\n{table(outcomes, order)}")
    return 0 if all(outcome.right for outcome in outcomes) else 1


def _try(draw: Draw, way: Callable[[Draw], Seen], out: Path) -> None:
    if (f"{draw.name}, {draw.launcher}", draw.number) in {(each.fault, each.number) for each in load(out)}:
        return
    began = time.monotonic()
    try:
        outcome = judged(draw, way(draw), time.monotonic() - began)
    except subprocess.TimeoutExpired:
        name, said = f"{draw.name}, {draw.launcher}", ("it did not end",)
        seconds = time.monotonic() - began
        outcome = Outcome(name, draw.number, draw.place, False, False, True, None, seconds, -1, said)
    append(out, outcome)
    told = (outcome.fault, outcome.number, outcome.right, outcome.code, *outcome.said)
    print(*told, sep="  ", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
