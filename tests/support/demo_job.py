"""The training of `doctor demo run`: the data loader of rank 1 waits for a file that never comes."""

import time
from datetime import timedelta

import torch
import torch.distributed as dist


def read_shard(path: str) -> bytes:
    with open(path, "rb") as file:
        return file.read(1 << 20)


def load(step: int, rank: int) -> None:
    if step == 12 and rank == 1:
        read_shard("shard-0012")
    time.sleep(0.3)


def main() -> None:
    dist.init_process_group("gloo", timeout=timedelta(seconds=80))
    for step in range(1000):
        load(step, dist.get_rank())
        dist.all_reduce(torch.ones(1000))
        if dist.get_rank() == 0:
            print(f"step {step} loss {8 / (step + 2):.4f}", flush=True)


if __name__ == "__main__":
    main()
