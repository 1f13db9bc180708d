"""A plain training loop, for launchers and titles: the ranks of torchrun, mp.spawn or fork.

Its arguments: `torchrun`; or `spawn` or `fork`, how many ranks run here, the number of the first of them, and
how many there are in all. TITLE gives each rank a title with setproctitle.
"""

from __future__ import annotations

import os
import sys
import time
from datetime import timedelta
from importlib import import_module
from typing import Any

import torch
import torch.distributed as dist
from torch import multiprocessing

from tests.trials.hang.jobs import BEFORE
from tests.trials.hang.jobs.strike import strike


def train(number: int, size: int) -> None:
    torch.set_num_threads(1)
    if title := os.environ.get("TITLE"):
        setproctitle: Any = import_module("setproctitle")
        setproctitle.setproctitle(f"{title} [{number}/{size}] epoch 3")
    strike(number, BEFORE)
    dist.init_process_group("gloo", rank=number, world_size=size, timeout=timedelta(seconds=1800))
    for step in range(1_000_000):
        time.sleep(0.02)
        strike(number, step)
        dist.all_reduce(torch.ones(4))


def spawned(gpu: int, first: int, size: int) -> None:
    """As many write it: no variable of the loop has the number of the rank."""
    train(first + gpu, size)


def main() -> None:
    how, *numbers = sys.argv[1:]
    if how == "torchrun":
        train(int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"]))
        return
    here, first, size = map(int, numbers)
    if how == "fork":
        number = next((each for each in range(1, here) if os.fork() == 0), 0)
        train(first + number, size)
        return
    multiprocessing.start_processes(spawned, args=(first, size), nprocs=here, start_method="spawn")  # type: ignore[attr-defined, no-untyped-call]


if __name__ == "__main__":
    main()
