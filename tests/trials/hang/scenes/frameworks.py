"""Jobs of frameworks: ranks that a framework starts in its own way, by any title."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache, partial
from importlib.metadata import Distribution, distributions

from tests.lab.needs import without
from tests.support.paths import ROOT
from tests.trials.hang.scenes.scene import FOLDER, JOBS, PATIENCE, HangScene, ScenePlace, SceneTruth

FRAMEWORKS = ROOT / ".venv-frameworks"
"""The environment that `scripts/hang-frameworks` makes."""
PYTHON = str(FRAMEWORKS / "bin" / "python")
WORLD = 3


@dataclass(frozen=True, slots=True)
class FrameworkJob:
    """How people start it."""

    name: str
    words: Callable[[ScenePlace], Sequence[str]]
    package: str = ""
    """What it needs in the environment of the frameworks."""
    first: int = 0
    """The first rank that the fault can have."""
    numbered: bool = True
    """Whether the number of the rank can be known."""
    patience: float = PATIENCE
    env: dict[str, str] = field(default_factory=dict)

    def lacks(self) -> str:
        if self.package and self.package not in installed():
            return f"{self.package} is not in {FRAMEWORKS.name}"
        program = "mpirun" if self.name == "mpi4py" else ""
        return f"it needs the program {program}" if program and without(program) else ""


@cache
def installed() -> frozenset[str]:
    """The packages of the environment of the frameworks."""
    folders = [str(each) for each in FRAMEWORKS.glob("lib/python3*/site-packages")]
    found: Sequence[Distribution] = list(distributions(path=folders))
    return frozenset(each.metadata["Name"].lower() for each in found)


def script(name: str) -> str:
    return str(JOBS / f"{name}.py")


def by_torchrun(name: str, *more: str, python: str = PYTHON) -> Callable[[ScenePlace], Sequence[str]]:
    def words(place: ScenePlace) -> Sequence[str]:
        launcher = [python, "-m", "torch.distributed.run", f"--nproc-per-node={WORLD}"]
        return [*launcher, "--master-addr=127.0.0.1", f"--master-port={place.port}", script(name), *more]

    return words


def by_itself(how: str) -> Callable[[ScenePlace], Sequence[str]]:
    return lambda _: [sys.executable, script("plain"), how, str(WORLD), "0", str(WORLD)]


KINDS = (
    FrameworkJob("lightning", lambda _: [PYTHON, script("lightning_job")], "lightning"),
    FrameworkJob("transformers", by_torchrun("transformers_job"), "transformers"),
    FrameworkJob("accelerate", by_torchrun("accelerate_job"), "accelerate"),
    FrameworkJob(
        "deepspeed",
        lambda place: [
            str(FRAMEWORKS / "bin" / "deepspeed"),
            f"--num_accelerators={WORLD}",
            f"--master_port={place.port}",
            script("deepspeed_job"),
        ],
        "deepspeed",
        env={"DS_ACCELERATOR": "cpu"},
    ),
    FrameworkJob(
        "ray",
        lambda place: [PYTHON, script("ray_job"), str(place.port)],
        "ray",
        env={"RAY_DEDUP_LOGS": "0"},
        patience=600.0,
    ),
    FrameworkJob("fsdp", by_torchrun("fsdp_job", python=sys.executable)),
    FrameworkJob("rpc", by_torchrun("rpc_job"), "numpy", first=1),
    FrameworkJob(
        "mpi4py",
        lambda _: ["mpirun", "--allow-run-as-root", "--oversubscribe", "-np", "3", PYTHON, script("mpi_job")],
        "mpi4py",
    ),
    FrameworkJob(
        "notebook",
        lambda _: [
            *(PYTHON, "-m", "nbconvert", "--to", "notebook", "--execute", "--output-dir", FOLDER),
            str(JOBS / "train.ipynb"),
        ],
        "nbconvert",
        numbered=False,
    ),
    FrameworkJob("spawn", by_itself("spawn")),
    FrameworkJob("fork", by_itself("fork"), numbered=False),
    FrameworkJob("titled", by_torchrun("plain", "torchrun"), "setproctitle", env={"TITLE": "bert-large"}),
)
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
    place.run(host, kind.words(place), more=env)
    codes, name = FAULTS[fault], frozenset({host.name})
    if not fault:
        place.until_trained([host], range(kind.first, WORLD))
        yield SceneTruth(codes, moves=True)
        return
    pid = place.until_hit(host, victim)
    number = victim if kind.numbered else None
    yield SceneTruth(codes, name, frozenset({pid}), fault if codes == (1,) else "", rank=number)


SCENES = tuple(
    HangScene(
        f"{kind.name} {fault or 'healthy'}",
        partial(framed, kind=kind, fault=fault),
        limit=2.0 if fault else 60.0,
        healthy=1 not in codes,
        lacks=kind.lacks,
    )
    for kind in KINDS
    for fault, codes in FAULTS.items()
)
