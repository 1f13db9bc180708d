"""Logs of real runs whose ranks write without prefixes, with progress bars: how rank 1 died is found."""

from __future__ import annotations

import pytest

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
}
"""The first cause and its rank. A shell loop does not say how a process ended."""


@pytest.mark.parametrize("name", sorted(path.name for path in RUNS.glob("*.log")))
def test_how_it_died_is_found(name: str) -> None:
    first = accusations(concluded(RUNS / name))[0]
    rank = next((each.rank for each in first.who), None)
    assert (first.symptom or first.brief, rank) == DIED[name]
