"""`python -m tests.trials.hang`: the requested number of trials of each fault, and their table."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from tests.lab import Lab, missing
from tests.lab.errors import LabError
from tests.lab.slurm import Slurm
from tests.trials.hang.counts import counts
from tests.trials.hang.drawn import draw
from tests.trials.hang.kinds import KINDS
from tests.trials.hang.launchers import LAUNCHERS, lacking
from tests.trials.hang.run import NoTrial, Site, trial
from tests.trials.hang.scenes import frameworks, over_hosts, starts, work
from tests.trials.hang.scenes.scene import LOOKS, HangScene, NoScene, looks_at, play
from tests.trials.outcome import Outcome, append, load

SCENES: Mapping[str, HangScene] = {
    scene.name: scene for of in (work, frameworks, starts, over_hosts) for scene in of.SCENES
}
LEAST = 3
"""The hosts that scenes need."""


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.trials.hang", description=__doc__)
    kinds = f"some of {','.join(KINDS)}, or of {','.join(SCENES)}; or only the first word of these"
    parser.add_argument("--faults", default=",".join((*KINDS, *SCENES)), help=kinds)
    parser.add_argument("--launchers", default=",".join(LAUNCHERS), help="take turns from trial to trial")
    parser.add_argument(
        "--users", default="root,trainee", help="who owns a job of faults and looks at it, drawn"
    )
    parser.add_argument(
        "--without", type=int, default=2, help="so many hosts without py-spy, in half of them"
    )
    parser.add_argument("--trials", type=int, default=20, help="so many of each fault and mode")
    parser.add_argument("--hosts", type=int, default=4)
    parser.add_argument("--ranks", type=int, default=1, help="on each host")
    parser.add_argument("--out", type=Path, default=Path("hang-trials.jsonl"), help="added to line by line")
    parser.add_argument("--table", action="store_true", help="no trials, only the table of those there are")
    args = parser.parse_args()
    wanted = args.faults.split(",")
    faults = [name for name in KINDS if name in wanted]
    scenes = [name for name in SCENES if {name, name.partition(" ")[0]} & {*wanted}]
    known = {*KINDS, *SCENES, *(name.partition(" ")[0] for name in SCENES)}
    if unknown := [word for word in wanted if word not in known]:
        parser.error(f"no such fault: {', '.join(unknown)}")
    launchers = args.launchers.split(",")
    if unknown := [word for word in launchers if word not in LAUNCHERS]:
        parser.error(f"no such launcher: {', '.join(unknown)}")
    outcomes = load(args.out)
    if not args.table:
        if reason := missing() or (faults and next(filter(None, map(lacking, launchers)), None)):
            print(f"No trials: {reason}.", file=sys.stderr)
            return 2
        outcomes += _trials(args, faults, scenes, launchers, {(each.fault, each.number) for each in outcomes})
    order = [f"{mode} {fault}" for fault, kind in KINDS.items() for mode in kind.modes]
    order += [look.at(scene) for scene in SCENES.values() for look in LOOKS]
    healthy = {f"{mode} {fault}" for fault, kind in KINDS.items() for mode in kind.modes if kind.code == 0}
    healthy |= {look.at(scene) for scene in SCENES.values() if scene.healthy for look in LOOKS}
    print(counts(outcomes, order, healthy, [look.name for look in LOOKS]))
    return 0 if all(outcome.right for outcome in outcomes) else 1


def _trials(
    args: argparse.Namespace,
    faults: Sequence[str],
    scenes: Sequence[str],
    launchers: Sequence[str],
    done: Collection[tuple[str, int]],
) -> Iterator[Outcome]:
    """The trials that were not made, in turn, so that a run that is cut short has some of each kind."""
    users = args.users.split(",")
    for name in scenes:
        if why := SCENES[name].lacks():
            print(f"No trial of {name}: {why}.", file=sys.stderr, flush=True)
    scenes = [name for name in scenes if not SCENES[name].lacks()]
    hosts = max(args.hosts, LEAST) if scenes else args.hosts
    with Lab(hosts, data=True) as lab, _slurm(lab, bool(faults) and "srun" in launchers) as slurm:
        site = Site(lab, slurm)
        for number in range(args.trials):
            for fault in faults:
                for mode in KINDS[fault].modes:
                    drawn = draw(
                        mode,
                        fault,
                        number,
                        hosts=hosts,
                        ranks=args.ranks,
                        launchers=launchers,
                        users=users,
                        without=args.without,
                    )
                    if drawn and (drawn.name, number) not in done:
                        yield from _tried(
                            partial(trial, site, drawn), f"{drawn.name} {drawn.place}", args.out
                        )
            for name in scenes:
                if looks := looks_at(SCENES[name], number, done):
                    yield from _tried(partial(play, lab, SCENES[name], number, looks), name, args.out)


def _tried(make: Callable[[], Iterable[Outcome]], name: str, out: Path) -> Iterator[Outcome]:
    try:
        for outcome in make():
            append(out, outcome)
            mark = "right" if outcome.right else "unnamed" if outcome.alone else "WRONG"
            print(f"{mark} {outcome.seconds:.0f} s", *outcome.said, sep="  ", file=sys.stderr, flush=True)
            yield outcome
    except (NoTrial, NoScene, LabError) as why:
        print(f"No trial: {name}: {why}", file=sys.stderr, flush=True)


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
