"""Jobs of frameworks: ranks that a framework starts in its own way, by any title."""

import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache, partial
from importlib.metadata import Distribution, distributions
from pathlib import Path

from msgspec import Struct

from tests.lab.needs import without
from tests.support.paths import ROOT
from tests.trials.hang.place import FOLDER, JOBS, PATIENCE
from tests.trials.hang.scenes.scene import HangScene, ScenePlace, SceneTruth
from tests.trials.kindfile import kinds

FRAMEWORKS = ROOT / ".venv-frameworks"
"""The environment that `scripts/hang-frameworks` makes."""
PYTHON = str(FRAMEWORKS / "bin" / "python")
WORLD = 3
NOTEBOOK = Path(JOBS).with_name("train.ipynb")


class FrameworkJob(Struct, frozen=True, forbid_unknown_fields=True):
    """How people start it."""

    words: str
    package: str = ""
    """What it needs in the environment of the frameworks."""
    first: int = 0
    """The first rank that the fault can have."""
    numbered: bool = True
    """Whether the number of the rank can be known."""
    patience: float = PATIENCE
    env: dict[str, str] = {}

    def lacks(self) -> str:
        if self.package and self.package not in installed():
            return f"{self.package} is not in {FRAMEWORKS.name}"
        program = "mpirun" if self.words.startswith("mpirun") else ""
        return f"it needs the program {program}" if program and without(program) else ""


@cache
def installed() -> frozenset[str]:
    """The packages of the environment of the frameworks."""
    folders = [str(each) for each in FRAMEWORKS.glob("lib/python3*/site-packages")]
    found: Sequence[Distribution] = list(distributions(path=folders))
    return frozenset(each.metadata["Name"].lower() for each in found)


def job(name: str) -> list[str]:
    """What a launcher starts."""
    return [JOBS, name]


def words(kind: FrameworkJob, port: int) -> list[str]:
    torchrun = "-m torch.distributed.run --nproc-per-node=3 --master-addr=127.0.0.1"
    return kind.words.format(
        bin=FRAMEWORKS / "bin",
        own=sys.executable,
        jobs=JOBS,
        notebook=NOTEBOOK,
        folder=FOLDER,
        port=port,
        torchrun=f"{torchrun} --master-port={port}",
    ).split()


JOBS_OF: Mapping[str, FrameworkJob] = kinds(__file__, FrameworkJob, "frameworks.yaml")
FAULTS = {"sleep": (1,), "lock": (1,), "matmul": (0, 3), "upload": (0, 3), "": (0,)}
"""What one rank does, and the exit codes that are right."""


@contextmanager
def framed(place: ScenePlace, kind: FrameworkJob, fault: str) -> Iterator[SceneTruth]:
    host, victim = place.hosts[0], place.lot.randrange(kind.first, WORLD)
    place.patience = kind.patience
    env = {
        "FAULT": fault,
        "VICTIM": str(victim),
        "AT": str(place.step),
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(place.port),
        "GLOO_SOCKET_IFNAME": "lo",
        **kind.env,
    }
    place.run(host, words(kind, place.port), env)
    codes, names = FAULTS[fault], frozenset({host.name})
    if not fault:
        place.until_trained([host], range(kind.first, WORLD))
        yield SceneTruth(codes, moves=True)
        return
    pid = place.until_hit(host, victim)
    number = victim if kind.numbered else None
    yield SceneTruth(codes, names, frozenset({pid}), fault if codes == (1,) else "", rank=number)


SCENES = tuple(
    HangScene(
        f"{name} {fault or 'healthy'}",
        partial(framed, kind=kind, fault=fault),
        limit=2.0 if fault else 60.0,
        healthy=1 not in codes,
        lacks=kind.lacks,
    )
    for name, kind in JOBS_OF.items()
    for fault, codes in FAULTS.items()
)
