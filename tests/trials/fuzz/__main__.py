"""`python -m tests.trials.fuzz`: spoils honest inputs for some minutes, and reports what broke.

    python -m tests.trials.fuzz --minutes 30 --seed 7            all targets, in turn
    python -m tests.trials.fuzz --case FILE TARGET               one case that was kept, once more

The same seed gives the same cases. Finds are kept in --out: one file for the case, one for the text.
"""

import argparse
import os
import sys
import time
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from tests.trials.fuzz.target import Target, tried
from tests.trials.fuzz.targets import TARGETS


@dataclass(slots=True)
class Tally:
    cases: int = 0
    cpu: float = 0.0
    longest: float = 0.0
    finds: dict[str, bytes] = field(default_factory=dict)


def main() -> int:
    args = _arguments()
    os.nice(10)
    targets = [target for target in TARGETS if target.name in args.targets]
    if args.case is not None:
        found = [said for target in targets if (said := tried(target, args.case.read_bytes()))]
        print("\n".join(found) or "nothing was found")
        return 1 if found else 0
    tallies = {target.name: Tally() for target in targets}
    until = time.monotonic() + 60 * args.minutes
    with suppress(KeyboardInterrupt):
        while time.monotonic() < until:
            for target in targets:
                _turn(target, tallies[target.name], args)
    for name, tally in tallies.items():
        print(
            f"{name:12} {tally.cases:8} cases {tally.cpu / 60:6.1f} min of CPU"
            f" {tally.longest:6.2f} s the longest {len(tally.finds):4} finds"
        )
    return 1 if any(tally.finds for tally in tallies.values()) else 0


def _turn(target: Target, tally: Tally, args: argparse.Namespace) -> None:
    """Some seconds of one target in turn, so that the most fragile target shows soon, whatever the total
    time.
    """
    began, until = time.process_time(), time.monotonic() + args.turn
    while time.monotonic() < until:
        before = time.process_time()
        case = target.case(f"{args.seed}:{tally.cases}")
        said = tried(target, case)
        tally.cases += 1
        tally.longest = max(tally.longest, time.process_time() - before)
        key = (said and "\n".join(line for line in said.splitlines()[1:] if "File" in line)[-300:]) or said
        if said and key and key not in tally.finds:
            tally.finds[key] = case
            kept = args.out / f"{target.name}-{len(tally.finds)}"
            kept.with_suffix(".case").write_bytes(case)
            kept.with_suffix(".txt").write_text(said, errors="backslashreplace")
            print(f"{target.name}, case {tally.cases}: {said}\n", file=sys.stderr, flush=True)
    tally.cpu += time.process_time() - began


def _arguments() -> argparse.Namespace:
    known = [target.name for target in TARGETS]
    parser = argparse.ArgumentParser(prog="python -m tests.trials.fuzz", description=__doc__)
    parser.add_argument("targets", metavar="TARGET", nargs="*", help=f"some of {', '.join(known)}")
    parser.add_argument("--minutes", type=float, default=1.0, help="for all targets together")
    parser.add_argument("--seed", default="0")
    parser.add_argument("--turn", type=float, default=5.0, help="seconds of one target before the next")
    parser.add_argument("--out", type=Path, default=Path("fuzz"), help="a folder for what is found")
    parser.add_argument("--case", type=Path, help="a case that was kept: try it again")
    args = parser.parse_args()
    if unknown := {*args.targets} - {*known}:
        parser.error(f"there is no target {', '.join(sorted(unknown))}; there are {', '.join(known)}")
    args.targets = args.targets or known
    args.out.mkdir(parents=True, exist_ok=True)
    return args


if __name__ == "__main__":
    sys.exit(main())
