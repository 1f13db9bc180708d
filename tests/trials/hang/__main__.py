"""`python -m tests.trials.hang`: the requested number of trials of each fault, and their table."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.lab import Lab, missing
from tests.lab.slurm import Slurm
from tests.trials.hang.drawn import Drawn, draw
from tests.trials.hang.kinds import KINDS
from tests.trials.hang.launchers import LAUNCHERS, lacking
from tests.trials.hang.run import NoTrial, Site, trial
from tests.trials.outcome import Outcome, append, load
from tests.trials.table import table


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.trials.hang", description=__doc__)
    parser.add_argument("--faults", default=",".join(KINDS), help=f"some of {','.join(KINDS)}")
    parser.add_argument("--launchers", default=",".join(LAUNCHERS), help="take turns from trial to trial")
    parser.add_argument("--users", default="root,trainee", help="who owns the job and looks at it, drawn")
    parser.add_argument(
        "--without", type=int, default=2, help="so many hosts without py-spy, in half of them"
    )
    parser.add_argument("--trials", type=int, default=20, help="so many of each fault and mode")
    parser.add_argument("--hosts", type=int, default=4)
    parser.add_argument("--ranks", type=int, default=1, help="on each host")
    parser.add_argument("--out", type=Path, default=Path("hang-trials.jsonl"), help="added to line by line")
    args = parser.parse_args()
    wanted = args.faults.split(",")
    if unknown := [word for word in wanted if word not in KINDS]:
        parser.error(f"no such fault: {', '.join(unknown)}")
    launchers = args.launchers.split(",")
    if unknown := [word for word in launchers if word not in LAUNCHERS]:
        parser.error(f"no such launcher: {', '.join(unknown)}")
    if reason := missing() or next(filter(None, map(lacking, launchers)), None):
        print(f"No trials: {reason}.", file=sys.stderr)
        return 2
    outcomes = load(args.out)
    done = {(each.fault, each.number) for each in outcomes}
    with Lab(args.hosts) as lab, _slurm(lab, "srun" in launchers) as slurm:
        site = Site(lab, slurm)
        for number in range(args.trials):  # in turn, so that a run that is cut short has some trials of each
            for fault in wanted:
                for mode in KINDS[fault].modes:
                    drawn = draw(
                        mode,
                        fault,
                        number,
                        hosts=args.hosts,
                        ranks=args.ranks,
                        launchers=launchers,
                        users=args.users.split(","),
                        without=args.without,
                    )
                    if drawn and (drawn.name, number) not in done:
                        outcomes += _tried(site, drawn, args.out)
    order = [f"{mode} {fault}" for fault, kind in KINDS.items() for mode in kind.modes]
    print(table(outcomes, order))
    return 0 if all(outcome.right for outcome in outcomes) else 1


def _tried(site: Site, drawn: Drawn, out: Path) -> list[Outcome]:
    try:
        outcome = trial(site, drawn)
    except NoTrial as why:
        print(f"No trial: {drawn.name} {drawn.place}: {why}", file=sys.stderr, flush=True)
        return []
    append(out, outcome)
    print(outcome.right, *outcome.said, sep="  ", file=sys.stderr, flush=True)
    return [outcome]


@contextmanager
def _slurm(lab: Lab, wanted: bool) -> Iterator[Slurm | None]:
    slurm = Slurm(lab).start() if wanted else None
    try:
        yield slurm
    finally:
        if slurm is not None:
            slurm.close()


if __name__ == "__main__":
    sys.exit(main())
