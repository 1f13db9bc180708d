"""A small training over gloo. FAULT is the fault of rank VICTIM at step AT; without it, there is no fault."""

import mmap
import os
import pickle
import signal
import time
from datetime import timedelta
from pathlib import Path

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, Dataset

FAULT = os.environ.get("FAULT", "")
VICTIM, AT = int(os.environ.get("VICTIM", "0")), int(os.environ.get("AT", "23"))
STEPS, EVERY = int(os.environ.get("STEPS", "60")), 10
TIMEOUT = timedelta(seconds=int(os.environ.get("TIMEOUT", "25")))
WORKERS = int(os.environ.get("WORKERS", "0"))
SIZE = int(os.environ.get("SIZE", "32"))
SAVE = os.environ.get("SAVE", "")
MPIRUN = {
    "RANK": "OMPI_COMM_WORLD_RANK",
    "WORLD_SIZE": "OMPI_COMM_WORLD_SIZE",
    "LOCAL_RANK": "OMPI_COMM_WORLD_LOCAL_RANK",
}


class Samples(Dataset[Tensor]):
    def __len__(self) -> int:
        return 1_000_000

    def __getitem__(self, index: int) -> Tensor:
        return torch.rand(SIZE)


def load_all() -> None:
    kept = []
    while True:
        kept.append(torch.ones(4_000_000))
        time.sleep(0.02)


def map_cache() -> None:
    """A cache in shared memory, such as libraries with several processes make."""
    with Path(f"/dev/shm/cache.{os.getpid()}").open("wb+") as file:
        file.truncate(32 << 20)
        with mmap.mmap(file.fileno(), 32 << 20) as cache:
            cache.write(bytes(32 << 20))


def read_shard() -> None:
    raise ValueError("shard 0017 has 4091 tokens, 4096 expected")


FAULTS = {
    "kill": lambda: os.kill(os.getpid(), signal.SIGKILL),
    "stop": lambda: os.kill(os.getpid(), signal.SIGSTOP),
    "raise": read_shard,
    "memory": load_all,
    "map": map_cache,
}


def save(model: nn.Module, path: Path) -> None:
    state = {"model": model.state_dict(), "moments": torch.ones(2_000_000)}
    if os.environ.get("PICKLED"):
        path.write_bytes(pickle.dumps(state))
    else:
        torch.save(state, path)


def main() -> None:
    for name, of_mpirun in MPIRUN.items():
        os.environ.setdefault(name, os.environ.get(of_mpirun, "0"))
    torch.set_num_threads(1)
    dist.init_process_group("gloo", timeout=TIMEOUT)
    rank = dist.get_rank()
    if rank == 0:
        print(f"training on {dist.get_world_size()} ranks, torch {torch.__version__}", flush=True)
    model = DistributedDataParallel(nn.Linear(SIZE, 8))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    losses = torch.zeros(1)
    for step, batch in enumerate(DataLoader(Samples(), batch_size=4, num_workers=WORKERS), start=1):
        if rank == VICTIM and step == AT:
            FAULTS.get(FAULT, lambda: None)()
        loss = (model(batch) - 1).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses += loss.detach()
        if step % EVERY == 0:
            if not (FAULT == "skip" and rank == VICTIM and step > AT):
                dist.all_reduce(losses)
            if rank == 0:
                print(
                    f"step {step}/{STEPS} loss {losses.item() / dist.get_world_size() / EVERY:.4f}",
                    flush=True,
                )
            losses.zero_()
        if SAVE and step % 20 == 0 and os.environ["LOCAL_RANK"] == "0":
            save(model, Path(SAVE) / f"step{step}.{rank}.pt")
        if step == STEPS:
            break
        time.sleep(0.02)
    dist.barrier()
    if rank == 0:
        print("training finished", flush=True)
    if os.environ.get("CLEAN", "1") == "1":
        dist.destroy_process_group()


if __name__ == "__main__":
    main()
