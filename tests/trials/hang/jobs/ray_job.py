"""Actors of Ray that train together, as the trainers on top of Ray have them."""

from __future__ import annotations

import os
import sys
import time
from datetime import timedelta
from importlib import import_module
from typing import Any

import torch
import torch.distributed as dist

ray: Any = import_module("ray")
WORLD = 3
ATTEMPTS = 6


class Worker:
    def fit(self, number: int, meeting: str) -> None:
        from tests.trials.hang.jobs.strike import strike

        torch.set_num_threads(1)
        dist.init_process_group(
            "gloo", init_method=meeting, rank=number, world_size=WORLD, timeout=timedelta(seconds=1800)
        )
        for turn in range(1_000_000):
            time.sleep(0.02)
            strike(number, turn)
            dist.all_reduce(torch.ones(4))


def begins(attempt: int) -> bool:
    """Ray gives its own daemons 30 s to begin, which is not enough on a busy machine."""
    try:
        ray.init(
            num_cpus=WORLD,
            include_dashboard=False,
            object_store_memory=80_000_000,
            _temp_dir=f"{os.environ['FOLDER']}/ray{attempt}",
        )
    except Exception as why:
        print(f"Ray did not begin: {why}", flush=True)
        ray.shutdown()
        return False
    return True


def main() -> None:
    if not any(map(begins, range(ATTEMPTS))):
        sys.exit("Ray never began")
    workers = [ray.remote(num_cpus=1)(Worker).remote() for _ in range(WORLD)]
    meeting = f"tcp://127.0.0.1:{sys.argv[1]}"
    ray.get([worker.fit.remote(number, meeting) for number, worker in enumerate(workers)])


if __name__ == "__main__":
    main()
