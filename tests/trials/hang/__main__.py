"""`python -m tests.trials.hang`: jobs of torchrun, mpirun, srun and frameworks that hang, or seem to."""

import argparse
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial

from tests.lab import Lab, missing
from tests.lab.slurm import Slurm
from tests.trials.hang.drawn import draw
from tests.trials.hang.kinds import KINDS
from tests.trials.hang.launchers import LAUNCHERS, lacking
from tests.trials.hang.run import Site, trial
from tests.trials.hang.scenes import frameworks, over_hosts, starts, work
from tests.trials.hang.scenes.scene import LOOKS, HangScene, looks_at, play
from tests.trials.runner import Args, Case, Cases, Series, main

SCENES: Mapping[str, HangScene] = {
    scene.name: scene for of in (work, frameworks, starts, over_hosts) for scene in of.SCENES
}
LEAST = 3
"""The hosts that scenes need."""
FAULTS = {f"{mode} {name}": kind for name, kind in KINDS.items() for mode in kind.modes}
ROWS = {look.at(scene): scene for scene in SCENES.values() for look in LOOKS}


def options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--launchers", default=",".join(LAUNCHERS), help="take turns from trial to trial")
    parser.add_argument(
        "--users", default="root,trainee", help="who owns a job of faults and looks at it, drawn"
    )
    parser.add_argument(
        "--without", type=int, default=2, help="so many hosts without py-spy, in half of them"
    )
    parser.add_argument("--hosts", type=int, default=4)
    parser.add_argument("--ranks", type=int, default=1, help="on each host")


def lacks(args: Args) -> str | None:
    launchers = args.launchers.split(",")
    if unknown := [word for word in launchers if word not in LAUNCHERS]:
        return f"there is no launcher {', '.join(unknown)}"
    faults = any(name in KINDS for name in args.kinds)
    return missing() or (faults and next(filter(None, map(lacking, launchers)), None)) or None


def cases(args: Args) -> Cases:
    faults = [name for name in args.kinds if name in KINDS]
    scenes = [SCENES[name] for name in args.kinds if name in SCENES]
    for scene in scenes:
        if why := scene.lacks():
            print(f"No trial of {scene.name}: {why}.", file=sys.stderr, flush=True)
    hosts = max(args.hosts, LEAST) if scenes else args.hosts
    with Lab(hosts, data=True) as lab, _slurm(lab, bool(faults) and "srun" in args.launchers) as slurm:
        site = Site(lab, slurm)
        for number in range(args.trials):
            for name in faults:
                yield from _faults(args, site, name, number)
            for scene in scenes:
                if not scene.lacks():
                    yield Case(looks_at(scene, number), partial(play, lab, scene))


def _faults(args: Args, site: Site, name: str, number: int) -> Iterator[Case]:
    """In each mode."""
    for mode in KINDS[name].modes:
        drawn = draw(
            mode,
            name,
            number,
            hosts=len(site.lab.hosts),
            ranks=args.ranks,
            launchers=args.launchers.split(","),
            users=args.users.split(","),
            without=args.without,
        )
        if drawn:
            yield Case([(drawn.name, number)], partial(trial, site, drawn))


@contextmanager
def _slurm(lab: Lab, wanted: bool) -> Iterator[Slurm | None]:
    slurm = Slurm(lab).start() if wanted else None
    try:
        yield slurm
    finally:
        if slurm is not None:
            slurm.close()


def is_fault(row: str) -> bool:
    if row in FAULTS:
        return FAULTS[row].code != 0
    return row not in ROWS or not ROWS[row].healthy


def part(row: str) -> str:
    """How doctor looked."""
    return next((look.name for look in LOOKS if look.name and row.endswith(look.name)), "")


SERIES = Series(
    "tests.trials.hang",
    "hang-trials.jsonl",
    kinds=(*KINDS, *SCENES),
    cases=cases,
    options=options,
    lacks=lacks,
    order=(*FAULTS, *ROWS),
    is_fault=is_fault,
    part=part,
)
if __name__ == "__main__":
    sys.exit(main(SERIES, __doc__))
