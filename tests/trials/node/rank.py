"""A rank of a small job, which does what its first argument says. FOLDER shows how far it is."""

import os
import socket
import sys
import threading
import time
from datetime import timedelta
from pathlib import Path

LONG = 500.0
FOLDER = Path(os.environ.get("FOLDER", "/tmp/node-trial"))


def mark(name: str) -> None:
    FOLDER.mkdir(exist_ok=True)
    (FOLDER / name).touch()


def rank() -> int:
    named = ("RANK", "OMPI_COMM_WORLD_RANK", "SLURM_PROCID")
    return int(next((os.environ[name] for name in named if name in os.environ), "0"))


def sleeps() -> None:
    mark(f"there.{os.getpid()}")
    time.sleep(LONG)


def waits() -> None:
    """For a rank 0 that never comes."""
    import torch.distributed as dist

    mark("there")
    dist.init_process_group("gloo", timeout=timedelta(seconds=LONG))


def trains(stuck: int = -1) -> None:
    import torch
    import torch.distributed as dist
    from torch.nn.parallel import DistributedDataParallel

    dist.init_process_group("gloo", timeout=timedelta(seconds=LONG))
    model = DistributedDataParallel(torch.nn.Linear(32, 32))
    ends, step = time.monotonic() + LONG, 0
    while time.monotonic() < ends:
        model(torch.ones(4, 32)).sum().backward()
        step += 1
        if step == 5:
            mark("there")
            if dist.get_rank() == stuck:
                time.sleep(LONG)
        time.sleep(0.02)


def hangs() -> None:
    trains(1)


def saves() -> None:
    """Rank 0 saves, while the others have ended one after another."""
    time.sleep(0.2 * rank())
    if rank() == 0:
        mark("there")
        while True:
            (FOLDER / "checkpoint").write_bytes(bytes(4_000_000))
            time.sleep(0.1)


def crashes() -> None:
    """Rank 1; a child that it started is left."""
    if os.fork() == 0:
        time.sleep(LONG)
    if rank() == 1:
        mark("there")
        raise RuntimeError("the loss is NaN")
    time.sleep(LONG)


def zombies() -> None:
    for _ in range(200):
        if os.fork() == 0:
            os._exit(1)
    sleeps()


def sockets() -> None:
    listener = socket.create_server(("127.0.0.1", 0), backlog=1000)
    held = []
    for _ in range(1000):
        held.append(socket.create_connection(listener.getsockname()))
        held.append(listener.accept()[0])
    sleeps()


def threads() -> None:
    for _ in range(400):
        threading.Thread(target=time.sleep, args=(LONG,), daemon=True).start()
    sleeps()


def forks() -> None:
    """As data loaders that are started again for each epoch."""
    ends = time.monotonic() + LONG
    mark("there")
    while time.monotonic() < ends:
        for child in [os.fork() for _ in range(4)]:
            if child == 0:
                os._exit(0)
            os.waitpid(child, 0)
        time.sleep(0.01)


def fills() -> None:
    """Its /dev/shm."""
    with open("/dev/shm/torch_4711_1", "wb") as file:
        try:
            while True:
                file.write(bytes(1 << 20))
        except OSError:
            pass
    sleeps()


def gone() -> None:
    """Its folder and its program are deleted."""
    own = FOLDER / f"own.{os.getpid()}"
    own.mkdir(parents=True)
    os.chdir(own)
    own.rmdir()
    sleeps()


if __name__ == "__main__":
    globals()[sys.argv[1]]()
