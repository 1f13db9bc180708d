"""What this machine has for the proof: GPUs, their driver, and an interpreter with a torch that uses them."""

import json
import shutil
import subprocess
from dataclasses import dataclass, field
from typing import Any

LIMIT = 120.0
"""The time limit in seconds for one question: the first use of a GPU may be slow."""
NAME_ONE = "name an interpreter whose torch was built for CUDA: PYTHON=/path/to/python3"
ASK = """
import json, platform, torch
cuda, sees = torch.version.cuda, torch.cuda.device_count()
nccl = torch.cuda.nccl.version() if cuda and sees else ()
print(json.dumps({
    "sees": sees,
    "CUDA": cuda or "",
    "torch": torch.__version__,
    "NCCL": ".".join(map(str, nccl)),
    "Python": platform.python_version(),
}))
"""


class Missing(Exception):
    """What the machine lacks, and what to do about it, in one sentence."""


@dataclass(frozen=True, slots=True)
class Machine:
    """The model of each GPU, and the versions of the software that drives them, by name."""

    python: str
    gpus: tuple[str, ...] = ()
    versions: dict[str, str] = field(default_factory=dict)


def look(python: str, backend: str) -> Machine:
    """Raises Missing if the backend cannot run here."""
    gpus, driver = _gpus() if backend == "nccl" else ((), "")
    path = shutil.which(python)
    if path is None:
        raise Missing(f"there is no interpreter {python}; {NAME_ONE}")
    told = _torch(path)
    if backend == "nccl" and not told["CUDA"]:
        raise Missing(f"the torch of {path} ({told['torch']}) was built without CUDA; {NAME_ONE}")
    if backend == "nccl" and not told["sees"]:
        raise Missing(
            f"the torch of {path} ({told['torch']}, CUDA {told['CUDA']}) sees none of the GPUs; "
            f"look at CUDA_VISIBLE_DEVICES, and whether driver {driver} is new enough for that CUDA"
        )
    del told["sees"]
    versions = {"driver": driver, **told}
    return Machine(path, gpus, {name: version for name, version in versions.items() if version})


def _gpus() -> tuple[tuple[str, ...], str]:
    """The model of each GPU, and the version of the driver."""
    do = "run this on a machine with an NVIDIA GPU and its driver"
    if shutil.which("nvidia-smi") is None:
        raise Missing(f"there is no nvidia-smi here; {do}")
    done = _run("nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader")
    rows = [line.rsplit(", ", 1) for line in done.stdout.splitlines() if ", " in line]
    if done.returncode or not rows:
        said = (done.stdout or done.stderr).strip().splitlines()
        raise Missing(f"nvidia-smi lists no GPU ({said[0] if said else 'it prints nothing'}); {do}")
    return tuple(name for name, _ in rows), rows[0][1]


def _torch(python: str) -> dict[str, Any]:
    done = _run(python, "-c", ASK)
    if done.returncode:
        said = done.stderr.strip().splitlines()
        why = said[-1] if said else f"exit code {done.returncode}"
        raise Missing(f"{python} cannot import torch ({why}); {NAME_ONE}")
    told: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return told


def _run(*argv: str) -> subprocess.CompletedProcess[str]:
    try:
        return subprocess.run(argv, capture_output=True, text=True, check=False, timeout=LIMIT)
    except subprocess.TimeoutExpired:
        raise Missing(f"{argv[0]} did not answer within {LIMIT:.0f} s; see why, then try again") from None
