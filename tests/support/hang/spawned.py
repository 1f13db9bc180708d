"""Ranks of torch.multiprocessing, which have no variables of their own: one sleeps at its fifth step.

Its arguments are the start method, the number of ranks, the rank that sleeps, the port of the rendezvous, and
a file that shows that the rank sleeps.
"""

import os
import sys
import time
from datetime import timedelta
from pathlib import Path

import torch
import torch.distributed as dist
from torch import multiprocessing


def work(rank: int, world: int, victim: int, hit: str) -> None:
    torch.set_num_threads(1)
    dist.init_process_group("gloo", rank=rank, world_size=world, timeout=timedelta(seconds=600))
    for step in range(1_000_000):
        time.sleep(0.02)
        if rank == victim and step == 5:
            Path(hit).write_text("1")
            time.sleep(1000)
        dist.all_reduce(torch.ones(4))


if __name__ == "__main__":
    method, world, victim, port, hit = sys.argv[1:]
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=port)
    told = int(world), int(victim), hit
    multiprocessing.start_processes(work, args=told, nprocs=int(world), start_method=method)  # type: ignore[attr-defined, no-untyped-call]
