"""A small training over gloo that stands still on purpose: FAULT in rank VICTIM, at step AT.

Each rank writes the number of its last step to FOLDER/step.RANK, of the one that it begins to share to
shares.RANK, and `hit` where its fault begins.
"""

import os
import signal
import threading
import time
from datetime import timedelta
from pathlib import Path

import torch
import torch.distributed as dist
from torch.utils.data import DataLoader, Dataset

RANK = int(os.environ.get("RANK", os.environ.get("OMPI_COMM_WORLD_RANK", "0")))
FAULT, AT = os.environ.get("FAULT", ""), int(os.environ.get("AT", "5"))
BAD = int(os.environ.get("VICTIM", "1")) == RANK
FOLDER = Path(os.environ["FOLDER"])
CHAIN = os.environ.get("CHAIN", "")
"""recv or irecv: each rank computes after the rank before it, and therefore receives from it."""


def mark(name: str, text: str = "1") -> None:
    (FOLDER / f"{name}.new.{RANK}").write_text(text)
    (FOLDER / f"{name}.new.{RANK}").rename(FOLDER / f"{name}.{RANK}")


class Samples(Dataset[torch.Tensor]):
    def __len__(self) -> int:
        return 1_000_000

    def __getitem__(self, index: int) -> torch.Tensor:
        if FAULT == "loader" and BAD and index >= AT:
            mark("hit")
            read_shard()
        return torch.ones(4) * index


def read_shard() -> str:
    return (FOLDER / "fifo").read_text()


def read_dead_shard() -> bytes:
    return (FOLDER / "dead" / "shard").read_bytes()


def wait_for_lock() -> None:
    lock = threading.Lock()
    lock.acquire()
    lock.acquire()


def compute(step: int) -> None:
    time.sleep(0.6 if FAULT == "slow" and BAD else 0.02)
    if not (BAD and step == AT) or FAULT in ("", "slow", "loader"):
        return
    mark("hit")
    if FAULT == "sleep":
        time.sleep(1000)
    elif FAULT.startswith("storage"):
        if FAULT == "storage-behind" and os.fork() == 0:
            read_dead_shard()
        time.sleep(0.5)
        read_dead_shard()
    elif FAULT == "lock":
        wait_for_lock()
    elif FAULT == "fifo":
        read_shard()
    elif FAULT == "stop":
        os.kill(os.getpid(), signal.SIGSTOP)
    elif FAULT == "spin":
        while True:
            pass


def share(value: torch.Tensor) -> torch.Tensor:
    dist.all_reduce(value)
    return value


def receive(value: torch.Tensor) -> None:
    if CHAIN == "recv":
        dist.recv(value, RANK - 1)
    else:
        received = dist.irecv(value, RANK - 1)
        assert received
        received.wait()


def main() -> None:
    torch.set_num_threads(1)
    os.environ.setdefault("RANK", str(RANK))
    os.environ.setdefault("WORLD_SIZE", os.environ.get("OMPI_COMM_WORLD_SIZE", "1"))
    dist.init_process_group("gloo", timeout=timedelta(seconds=600))
    for step, batch in enumerate(DataLoader(Samples(), batch_size=1, num_workers=FAULT == "loader")):
        if CHAIN and RANK:
            receive(batch)
        compute(step)
        if CHAIN and dist.get_world_size() > RANK + 1:
            dist.send(batch, RANK + 1)
        mark("shares", str(step))
        share(batch)
        mark("step", str(step))


if __name__ == "__main__":
    main()
