"""A script that is rank 0 and forks the others; no variable gives a number. One sleeps at its fifth step.

Called with the number of ranks, the one that sleeps, the port where they meet, a file that says that it
sleeps, and perhaps a title for all of them.
"""

import os
import sys
import time
from datetime import timedelta
from pathlib import Path

import torch
import torch.distributed as dist

from tests.support.hang.titles import give_title


def work(number: int, size: int, victim: int, hit: str, title: str) -> None:
    torch.set_num_threads(1)
    if title:
        give_title(title)
    dist.init_process_group("gloo", rank=number, world_size=size, timeout=timedelta(seconds=600))
    for step in range(1_000_000):
        time.sleep(0.02)
        if number == victim and step == 5:
            Path(hit).write_text(str(os.getpid()))
            time.sleep(1000)
        dist.all_reduce(torch.ones(4))


def main() -> None:
    size, victim, port, hit, *title = sys.argv[1:]
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=port)
    number = next((each for each in range(1, int(size)) if os.fork() == 0), 0)
    work(number, int(size), int(victim), hit, "".join(title))


if __name__ == "__main__":
    main()
