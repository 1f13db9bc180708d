"""Jobs of a lab's Slurm: an sbatch script with `doctor` on its PATH, its output and its end."""

import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from .controller import REPOSITORY
from .errors import LabError
from .machine import PATH
from .slurm import SHARED, Slurm

BEFORE = frozenset({"PENDING", "CONFIGURING", "RUNNING", "SUSPENDED"})


@dataclass(frozen=True, slots=True)
class Job:
    """One job by its id. `folder` is visible to the controller and, as `inside`, to all nodes."""

    slurm: Slurm
    number: str
    folder: Path

    def field(self, name: str) -> str:
        """A field of slurmctld about the job, such as JobState; empty if it has no value."""
        said = self.slurm.run(["scontrol", "show", "job", self.number, "-o"]).stdout
        return next((word.partition("=")[2] for word in said.split() if word.startswith(f"{name}=")), "")

    @property
    def over(self) -> bool:
        """Whether its script has ended; a dead node may keep the job completing for long."""
        return self.field("JobState") not in BEFORE

    @property
    def output(self) -> str:
        """The output of the script so far, both streams."""
        path = self.folder / "output"
        return path.read_text(errors="replace") if path.exists() else ""

    def file(self, name: str) -> str:
        """The contents of `$JOB/name`, written by the script; empty if there is no such file."""
        path = self.folder / name
        return path.read_text(errors="replace") if path.exists() else ""

    def await_word(self, word: str, seconds: float = 120) -> None:
        self._await(lambda: word in self.output or self.over, f"word {word!r}", seconds)
        assert word in self.output, self.output

    def ended(self, seconds: float = 240) -> int:
        """Wait for the end of the script; its exit code."""
        self._await(lambda: self.over, "end", seconds)
        return int(self.field("ExitCode").partition(":")[0])

    def cancel(self) -> None:
        self.slurm.run(["scancel", self.number])

    def _await(self, holds: Callable[[], bool], what: str, seconds: float) -> None:
        deadline = time.monotonic() + seconds
        while not holds():
            if time.monotonic() > deadline:
                raise LabError(f"job {self.number} has no {what} after {seconds:g} s: {self.output}")
            time.sleep(0.1)


def environment(extra: Mapping[str, str] | None = None) -> dict[str, str]:
    """The environment of a user whose activated Python environment has torch and cluster-doctor."""
    folders = f"{SHARED}/bin:{Path(sys.executable).parent}:{PATH}"
    return {"PATH": folders, "HOME": "/root", "PYTHONPATH": str(REPOSITORY), **(extra or {})}


def submit(slurm: Slurm, script: str, *options: str, nodes: int = 4) -> Job:
    """Submit `script`, given without its first line; all nodes and the test see the folder `$JOB`."""
    shared = slurm.lab.directory / "shared"
    _install(shared / "bin")
    name = f"job-{time.monotonic_ns()}"
    folder = shared / name
    folder.mkdir()
    inside = f"{SHARED}/{name}"
    (folder / "script").write_text(f"#!/bin/sh\n{script}")
    done = slurm.run(
        [
            "sbatch",
            "--parsable",
            f"--nodes={nodes}",
            "--no-requeue",
            f"--output={inside}/output",
            "--chdir=/root",
            *options,
            str(folder / "script"),
        ],
        env=environment({"JOB": inside}),
    )
    if done.returncode:
        raise LabError(f"sbatch: {done.stderr}")
    return Job(slurm, done.stdout.strip().split(";")[0], folder)


def _install(folder: Path) -> None:
    """Put `doctor` on the PATH as pip does."""
    if not folder.exists():
        folder.mkdir()
        program = folder / "doctor"
        program.write_text(f'#!/bin/sh\nexec {sys.executable} -m doctor "$@"\n')
        program.chmod(0o755)
