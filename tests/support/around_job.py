"""A small training over gloo for `doctor run`: FAULT at step AT, in the rank VICTIM."""

from __future__ import annotations

import os
import signal
import sys
import time

import torch
import torch.distributed as dist
import torch.utils.data

OTHERS = {
    "RANK": ("OMPI_COMM_WORLD_RANK", "SLURM_PROCID"),
    "WORLD_SIZE": ("OMPI_COMM_WORLD_SIZE", "SLURM_NTASKS"),
    "LOCAL_RANK": ("OMPI_COMM_WORLD_LOCAL_RANK", "SLURM_LOCALID"),
}
"""The variables of torchrun, and what mpirun and srun call them."""
for name, others in OTHERS.items():
    given = [os.environ[each] for each in (name, *others) if each in os.environ]
    os.environ.update({name: given[0]} if given else {})
FAULT, AT = os.environ.get("FAULT", ""), int(os.environ.get("AT", "4"))
STEPS, PAUSE = int(os.environ.get("STEPS", "12")), float(os.environ.get("PAUSE", "0"))


class Stuck(torch.utils.data.Dataset[torch.Tensor]):
    """The storage that it reads from does not answer."""

    def __len__(self) -> int:
        return 1

    def __getitem__(self, _: int) -> torch.Tensor:
        time.sleep(10_000)
        return torch.ones(1)


def fault(step: int, rank: int) -> None:
    if step != AT or rank != int(os.environ.get("VICTIM", "1")):
        return
    if FAULT == "sleep":
        time.sleep(10_000)
    elif FAULT == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    elif FAULT == "raise":
        raise ValueError("shape of the batch")
    elif FAULT == "loader":
        next(iter(torch.utils.data.DataLoader(Stuck(), num_workers=1)))
    elif FAULT == "pause":
        time.sleep(PAUSE)


def main() -> None:
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    for step in range(STEPS):
        fault(step, rank)
        dist.all_reduce(torch.ones(8))
        if rank == 0:
            loss = float("nan") if FAULT == "nan" and step >= AT else 4 / (step + 1)
            print(f"step {step} loss {loss:.4f}", flush=True)
        time.sleep(float(os.environ.get("EACH", "0.1")))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
    sys.exit(0)
