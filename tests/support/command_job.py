"""A small training over gloo for `doctor run`: FAULT at step AT, in the rank VICTIM."""

import os
import signal
import sys
import time
from pathlib import Path

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
STEPS = int(os.environ.get("STEPS", "12"))
PAUSES = [float(each) for each in os.environ.get("PAUSE", "0").split(",")]
APART = 3
"""Steps from a pause to the next one."""
FLOOD = int(os.environ.get("FLOOD", "0"))
"""The lines before each step."""
MEMORY = Path("/sys/fs/cgroup/memory")
CROWDED = 64 << 20
"""The bytes that a rank may have, or a batch needs."""


class Large(torch.utils.data.Dataset[torch.Tensor]):
    """A worker passes it on in /dev/shm."""

    def __len__(self) -> int:
        return 1

    def __getitem__(self, _: int) -> torch.Tensor:
        return torch.ones(CROWDED, dtype=torch.uint8)


class Stuck(torch.utils.data.Dataset[torch.Tensor]):
    """The storage that it reads from does not answer."""

    def __len__(self) -> int:
        return 1

    def __getitem__(self, _: int) -> torch.Tensor:
        time.sleep(10_000)
        return torch.ones(1)


def use_up_memory() -> None:
    """In a control group with a limit, as a container has one."""
    group = MEMORY / f"around-{time.time_ns()}"
    group.mkdir()
    (group / "memory.limit_in_bytes").write_text(str(CROWDED))
    (group / "cgroup.procs").write_text(str(os.getpid()))
    kept = []
    while True:
        kept.append(bytearray(b"x" * (1 << 20)))


def compile_model(seconds: float) -> None:
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        sum(range(1000))


def write_checkpoint(seconds: float) -> None:
    """To a slow disk."""
    until = time.monotonic() + seconds
    with Path(os.environ.get("TMPDIR", "/tmp"), f"checkpoint-{os.getpid()}").open("wb") as file:
        while time.monotonic() < until:
            file.write(bytes(1_000_000))
            file.flush()
            os.fsync(file.fileno())
            file.seek(0)
            time.sleep(0.05)
    os.unlink(file.name)


def pause(step: int) -> None:
    number, rest = divmod(step - AT, APART)
    if rest or not 0 <= number < len(PAUSES):
        return
    {"pause": time.sleep, "compile": compile_model, "checkpoint": write_checkpoint}[FAULT](PAUSES[number])


def fault(step: int, rank: int) -> None:
    if rank != int(os.environ.get("VICTIM", "1")):
        return
    if FAULT in ("pause", "compile", "checkpoint"):
        pause(step)
    if step != AT:
        return
    if FAULT == "sleep":
        time.sleep(10_000)
    elif FAULT == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    elif FAULT == "raise":
        raise ValueError("shape of the batch")
    elif FAULT == "loader":
        next(iter(torch.utils.data.DataLoader(Stuck(), num_workers=1)))
    elif FAULT == "shm":
        next(iter(torch.utils.data.DataLoader(Large(), num_workers=1)))
    elif FAULT == "memory":
        use_up_memory()
    elif FAULT == "skip":
        dist.barrier()


def main() -> None:
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    for step in range(STEPS):
        fault(step, rank)
        dist.all_reduce(torch.ones(8))
        if rank == 0:
            sys.stdout.write("".join(f"line {n}\n" for n in range(FLOOD)))
        if rank == 0 and FAULT != "silent":
            loss = float("nan") if FAULT == "nan" and step >= AT else 4 / (step + 1)
            print(f"step {step} loss {loss:.4f}", flush=True)
        time.sleep(float(os.environ.get("EACH", "0.1")))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
    sys.exit(0)
