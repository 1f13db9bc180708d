"""Jobs of a lab's Slurm: an sbatch script with `doctor` on its PATH, what it printed, how it ended."""

from __future__ import annotations

import os
import subprocess
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
    """One job by its number. `folder` is seen by the controller and, as `inside`, by all nodes."""

    slurm: Slurm
    number: str
    folder: Path

    def field(self, name: str) -> str:
        """What slurmctld says of the job, such as JobState; empty where it says nothing."""
        said = self.slurm.run(["scontrol", "show", "job", self.number, "-o"]).stdout
        return next((word.partition("=")[2] for word in said.split() if word.startswith(f"{name}=")), "")

    @property
    def over(self) -> bool:
        """Its script has ended; a dead node may keep it completing for long."""
        return self.field("JobState") not in BEFORE

    @property
    def output(self) -> str:
        """What the script has printed so far, both streams."""
        path = self.folder / "output"
        return path.read_text(errors="replace") if path.exists() else ""

    def file(self, name: str) -> str:
        """What the script wrote to `$JOB/name`; empty where there is no such file."""
        path = self.folder / name
        return path.read_text(errors="replace") if path.exists() else ""

    def await_word(self, word: str, seconds: float = 120) -> None:
        self._await(lambda: word in self.output or self.over, f"word {word!r}", seconds)
        assert word in self.output, self.output

    def ended(self, seconds: float = 240) -> int:
        """The script's exit code, when it is over."""
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
    """As of a user with an activated environment that has torch and cluster-doctor."""
    folders = f"{SHARED}/bin:{Path(sys.executable).parent}:{PATH}"
    return {"PATH": folders, "HOME": "/root", "PYTHONPATH": str(REPOSITORY), **(extra or {})}


def submit(slurm: Slurm, script: str, *options: str, nodes: int = 4) -> Job:
    """`script` without its first line; `$JOB` is a folder that all nodes and the test see."""
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
    """`doctor` as pip would put it on the PATH."""
    if not folder.exists():
        folder.mkdir()
        program = folder / "doctor"
        program.write_text(f'#!/bin/sh\nexec {sys.executable} -m doctor "$@"\n')
        program.chmod(0o755)


def run_in(slurm: Slurm, command: str, *options: str, nodes: int = 4) -> subprocess.CompletedProcess[str]:
    """A command in salloc's shell, on the controller."""
    return slurm.run(
        ["salloc", "-Q", f"--nodes={nodes}", *options, "sh", "-c", command],
        env={"PATH": f"{Path(sys.executable).parent}:{os.environ.get('PATH', PATH)}"},
    )
