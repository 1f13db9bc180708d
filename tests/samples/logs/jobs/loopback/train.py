"""A small loop of all-reduces, for logs. `FAULT` says what goes wrong, as "attempt:rank:step:what"."""

import os
import signal
import time

import torch
import torch.distributed as dist
from torch._C._distributed_c10d import TCPStore
from torch.distributed.distributed_c10d import PrefixStore


def main() -> None:
    rank, attempt = int(os.environ["RANK"]), int(os.environ.get("TORCHELASTIC_RESTART_COUNT", 0))
    store = TCPStore(os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]), is_master=False)
    dist.init_process_group(
        "gloo",
        store=PrefixStore(str(attempt), store),
        rank=rank,
        world_size=int(os.environ["WORLD_SIZE"]),
    )
    faults = [f.split(":") for f in os.environ.get("FAULT", "").split() if f]
    if rank == 0:
        print(f"training on {dist.get_world_size()} ranks, torch {torch.__version__}", flush=True)
    for step in range(1, 41):
        for a, r, s, what in faults:
            if int(a) == attempt and int(r) == rank and int(s) == step:
                if what == "raise":
                    load_shard(step)
                if what == "kill":
                    os.kill(os.getpid(), signal.SIGKILL)
                if what == "sleep":
                    wait_for_data()
        grad = torch.full((1024,), float(step))
        average(grad)
        if rank == 0 and step % 10 == 0:
            print(f"step {step}/40 loss {2.0 / step:.4f}", flush=True)
        time.sleep(0.05)
    if rank == 0:
        print("training finished", flush=True)
    dist.destroy_process_group()


def average(grad: torch.Tensor) -> None:
    dist.all_reduce(grad)


def load_shard(step: int) -> None:
    raise ValueError(f"shard 00{step} is empty")


def wait_for_data() -> None:
    while True:
        time.sleep(1)


if __name__ == "__main__":
    main()
