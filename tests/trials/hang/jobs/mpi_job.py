"""mpi4py alone, without torch in its loop."""

from __future__ import annotations

import time
from importlib import import_module
from typing import Any

from tests.trials.hang.jobs.strike import strike

MPI: Any = import_module("mpi4py.MPI")


def main() -> None:
    comm = MPI.COMM_WORLD
    for turn in range(1_000_000):
        time.sleep(0.02)
        strike(comm.Get_rank(), turn)
        comm.allreduce(1)


if __name__ == "__main__":
    main()
