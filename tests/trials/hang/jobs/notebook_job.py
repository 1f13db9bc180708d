"""What a cell of `train.ipynb` runs: accelerate forks the ranks out of the notebook's kernel."""

from __future__ import annotations

import os
import time
from importlib import import_module
from typing import Any

import torch
import torch.distributed as dist

from tests.trials.hang.jobs.strike import strike


def train() -> None:
    torch.set_num_threads(1)
    accelerator = accelerate().Accelerator(cpu=True)
    for step in range(1_000_000):
        time.sleep(0.02)
        strike(accelerator.process_index, step)
        dist.all_reduce(torch.ones(4))


def accelerate() -> Any:
    return import_module("accelerate")


def launch() -> None:
    """As people call it in a cell."""
    accelerate().notebook_launcher(train, num_processes=3, use_port=os.environ["MASTER_PORT"])
