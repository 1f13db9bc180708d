"""Work of one rank that looks like a hang from outside, and hangs that look like work."""

import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial

from tests.support.cases import from_cases
from tests.support.hang.dead_mount import mount_dead
from tests.support.paths import ROOT
from tests.trials.hang.place import FOLDER
from tests.trials.hang.scenes.frameworks import PYTHON, installed
from tests.trials.hang.scenes.scene import HangScene, ScenePlace, SceneTruth
from tests.trials.kindfile import entries

SCRIPT = str(ROOT / "tests" / "support" / "hang" / "work.py")
WORLD = 3
KINDS: Mapping[str, Sequence[str]] = entries(__file__, "work.yaml")
CODES = {"healthy": (0, 3), "hangs": (1,), "undecided": (3,)}
BY_ALL = ("leave_all", "lock_over_collective")
"""What every rank does at once; the first one is not at fault."""


FUNCTIONS = from_cases(__file__, "FUNCTIONS", dict[str, str])


@contextmanager
def worked(place: ScenePlace, kind: str, codes: tuple[int, ...]) -> Iterator[SceneTruth]:
    """Ranks that a plain loop starts on one host; one of them does this `kind` of work."""
    beside = kind.endswith("_beside_evaluator")
    host, victim = place.hosts[0], place.lot.randrange(WORLD - beside)
    if kind == "slow_storage":
        mount_dead(host, f"{FOLDER}/slow", "6")
    for rank in range(WORLD):
        env = {
            "RANK": str(rank),
            "LOCAL_RANK": str(rank),
            "WORLD_SIZE": str(WORLD),
            "MASTER_ADDR": host.address,
            "MASTER_PORT": str(place.port),
            "KIND": kind,
            "VICTIM": str(victim),
            "AT": str(place.step + 300 * beside),  # the job goes on for long without its evaluator
        }
        python = PYTHON if kind == "numpy_alone" else sys.executable
        own_log = ["sh", "-c", 'exec "$@" >"$FOLDER/log.$RANK"', "sh"] if kind == "long_steps" else []
        place.run(host, [*own_log, python, SCRIPT], env)
    guilty = range(1, WORLD) if kind in BY_ALL else (victim,)
    pids = frozenset(place.until_hit(host, rank) for rank in guilty)
    named = FUNCTIONS.get(kind, kind) if codes != (0, 3) else ""
    yield SceneTruth(codes, frozenset({host.name}), pids, named, rank=None if kind in BY_ALL else victim)


def lacks(kind: str) -> str:
    program = {"judge_by_curl": "curl", "compile_by_gcc": "gcc"}.get(kind, "")
    if program and shutil.which(program) is None:
        return f"it needs the program {program}"
    return "numpy is not installed" if kind == "numpy_alone" and "numpy" not in installed() else ""


SCENES = tuple(
    HangScene(
        f"work {kind}",
        partial(worked, kind=kind, codes=codes),
        healthy=1 not in codes,
        lacks=partial(lacks, kind),
    )
    for what, codes in CODES.items()
    for kind in KINDS[what]
)
