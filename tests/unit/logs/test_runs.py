"""Logs of real runs whose ranks write without prefixes, with progress bars: how rank 1 died is found.

Under torchrun, mpirun, srun and a shell loop, with the Trainer of Hugging Face, and with Lightning.
"""

from __future__ import annotations

import pytest

from doctor.logs.model import LogOutcome
from tests.support.fault_logs import accusations, concluded
from tests.support.paths import ROOT

RUNS = ROOT / "tests" / "samples" / "logs" / "runs"
EXCEPTION = "exception of the program"
DIED = {
    "torchrun-exception.log": (EXCEPTION, 1),
    "torchrun-exit1.log": ("torchrun-child", 1),
    "torchrun-nan.log": (EXCEPTION, 0),
    "torchrun-nomodule.log": ("python-module-missing", 1),
    "torchrun-oom.log": ("torchrun-killed", 1),
    "torchrun-port.log": ("torch-port-in-use", None),
    "torchrun-shm.log": ("python-disk-full", 1),
    "torchrun-sigkill.log": ("torchrun-killed", 1),
    "loop-exception.log": (EXCEPTION, 1),
    "loop-exit1.log": ("gloo-peer-closed", None),
    "loop-sigkill.log": ("gloo-peer-closed", None),
    "loop-nan.log": (EXCEPTION, 1),
    "loop-nomodule.log": ("python-module-missing", None),
    "loop-oom.log": ("gloo-peer-closed", None),
    "loop-port.log": ("torch-port-in-use", None),
    "loop-shm.log": ("python-disk-full", 1),
    "mpirun-exception.log": (EXCEPTION, 1),
    "mpirun-exit1.log": ("mpi-rank-code", 1),
    "mpirun-nan.log": ("mpi-rank-code", 1),
    "mpirun-nomodule.log": ("python-module-missing", None),
    "mpirun-oom.log": ("mpi-rank-signal", 1),
    "mpirun-port.log": ("torch-port-in-use", None),
    "mpirun-shm.log": ("python-disk-full", 1),
    "mpirun-sigkill.log": ("mpi-rank-signal", 1),
    "hf-disk.log": ("torch-save-failed", 1),
    "hf-ecc.log": ("torch-cuda-hardware", 1),
    "hf-exception.log": (EXCEPTION, 1),
    "hf-memory.log": ("python-host-memory", 1),
    "hf-module.log": ("python-module-missing", 1),
    "hf-nan.log": ("loss-nan", None),
    "hf-sigkill.log": ("torchrun-killed", 1),
    "hf-sigsegv.log": ("torchrun-segfault", 1),
    "hf-single-ecc.log": ("torch-cuda-hardware", None),
    "hf-timelimit.log": ("torchrun-told-to-end", None),
    "accelerate-exception.log": (EXCEPTION, None),
    "accelerate-sigkill.log": ("torchrun-killed", None),
    "lightning-disk.log": ("torch-save-failed", 1),
    "lightning-ecc.log": ("torch-cuda-hardware", 1),
    "lightning-exception.log": (EXCEPTION, 1),
    "lightning-memory.log": ("python-host-memory", 1),
    "lightning-module.log": ("python-module-missing", 1),
    "lightning-nan.log": ("loss-nan", None),
    "lightning-sigkill.log": ("ended without a word", 1),
    "lightning-sigsegv.log": ("ended without a word", 1),
    "lightning-timelimit.log": ("lightning-told-to-end", None),
    "srun-cancel.log": ("slurm-cancelled", None),
    "srun-disk.log": ("torch-save-failed", 1),
    "srun-ecc.log": ("torch-cuda-hardware", 1),
    "srun-exception.log": (EXCEPTION, 1),
    "srun-hf-exception.log": (EXCEPTION, 1),
    "srun-lightning-exception.log": (EXCEPTION, 1),
    "srun-memory.log": ("python-host-memory", 1),
    "srun-module.log": ("python-module-missing", 1),
    "srun-nan.log": ("loss-nan", None),
    "srun-sigkill.log": ("slurm-task-killed", 1),
    "srun-sigsegv.log": ("slurm-task-crashed", 1),
    "srun-timelimit.log": ("slurm-time-limit", None),
}
"""The first cause and its rank. A shell loop does not say how a process ended."""

HEALTHY = sorted(path.name for path in (RUNS / "healthy").glob("*.log"))


@pytest.mark.parametrize("name", HEALTHY)
def test_nothing_is_said_of_a_run_that_ended_well(name: str) -> None:
    said = concluded(RUNS / "healthy" / name)
    assert (said.outcome, said.charges, said.odd) == (LogOutcome.CLEAN, (), ())


@pytest.mark.parametrize("name", sorted(path.name for path in RUNS.glob("*.log")))
def test_how_it_died_is_found(name: str) -> None:
    first = accusations(concluded(RUNS / name))[0]
    rank = next((each.rank for each in first.who), None)
    assert (first.symptom or first.brief, rank) == DIED[name]
