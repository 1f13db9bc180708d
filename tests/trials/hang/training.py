"""A training over gloo that stands still on purpose: FAULTS in VICTIMS at step AT, spread as MODE says.

Each rank keeps the number of its last step in FOLDER/step.RANK, and hit.RANK is there once its fault begins.
Its rank is the one that torchrun, mpirun or srun gave it.
"""

import ctypes
import os
import signal
import subprocess
import time
from contextlib import suppress
from datetime import timedelta

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, Dataset

from tests.support.hang import work
from tests.trials.hang import strike

MODE, FAULTS = os.environ.get("MODE", "ddp"), os.environ.get("FAULTS", "").split(",")
VICTIMS, AT = os.environ.get("VICTIMS", "").split(","), int(os.environ.get("AT", "5"))
FOLDER, WIDTH, BATCH, LOGS = work.FOLDER, 32, 4, 10
TIMES = "times"
"""A file of each rank: when it ended its steps."""


def said(*names: str) -> str:
    """The value that the launcher sets; each launcher has its own name for it."""
    return next(os.environ[name] for name in names if name in os.environ)


def dist_rank() -> int:
    return int(said("RANK", "OMPI_COMM_WORLD_RANK", "SLURM_PROCID"))


def mine() -> str:
    """The fault of this rank."""
    return dict(zip(VICTIMS, FAULTS, strict=True)).get(str(dist_rank()), "")


def mark(name: str, text: str = "1") -> None:
    strike.mark(name, dist_rank(), text)


class Samples(Dataset[Tensor]):
    def __len__(self) -> int:
        return 1_000_000

    def __getitem__(self, index: int) -> Tensor:
        if mine() == "loader" and index >= AT * BATCH:
            mark("hit")
            read_shard()
        return torch.ones(WIDTH)


def read_shard() -> str:
    return (FOLDER / "fifo").read_text()


def read_dead_shard() -> bytes:
    return (FOLDER / "dead" / "shard").read_bytes()


def run_dead_program() -> None:
    """In state D: a process that starts a program waits until the kernel has read it."""
    subprocess.run([FOLDER / "dead" / "shard"], check=True)


def hold_gil() -> None:
    ctypes.PyDLL(None).sleep(10_000)


def write_checkpoint() -> None:
    with (FOLDER / "checkpoint").open("wb") as file:
        while True:
            file.seek(0)
            file.write(bytes(4_000_000))
            time.sleep(0.05)


STOPS = {
    "sleep": work.sleep,
    "spin": work.spin,
    "lock": work.lock,
    "fifo": read_shard,
    "gil": hold_gil,
    "stop": lambda: os.kill(os.getpid(), signal.SIGSTOP),
    "storage": read_dead_shard,
    "dstate": run_dead_program,
    "checkpoint": write_checkpoint,
    "hub": work.hub_lock,
    "download": work.lock_of_a_download,
    "briefly": work.short_lock,
    "fork": work.fork_lock,
    "leave": work.leave,
}


class Layer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Linear(WIDTH, WIDTH)

    def forward(self, batch: Tensor) -> Tensor:
        misbehave()
        return torch.tanh(self.inner(batch))


step = 0
KILLS = {"kill", "lost"}


def misbehave() -> None:
    time.sleep(0.01)
    if mine() == "slow":
        time.sleep(0.4)
    if "uneven" in FAULTS:
        time.sleep(0.1 * dist_rank())
    if "over" in FAULTS and step == AT:
        mark("hit")
        work.leave()
    if mine() in STOPS and step == AT:
        mark("hit")
        STOPS[mine()]()


def add_collective() -> None:
    """A collective that no other rank calls."""
    if mine() == "extra" and step == AT:
        mark("hit")
        dist.barrier()


def log_loss(loss: Tensor) -> None:
    """The loss of all ranks."""
    if mine() in ("skip", "order") and step >= AT:
        mark("hit")
    dist.all_reduce(loss.detach())


def make_group() -> None:
    """All ranks wait in the store for a rank that has ended."""
    if mine() in KILLS and step == AT:
        mark("hit")
        os.kill(os.getpid(), signal.SIGKILL)
    if KILLS & {*FAULTS} and step == AT:
        dist.new_group(list(range(dist.get_world_size())))


class Spread:
    """Which ranks work together: ddp, tp (pairs, and the remaining rank), pp (a chain)."""

    def __init__(self) -> None:
        self.rank, self.world = dist.get_rank(), dist.get_world_size()
        self.layer: nn.Module = Layer()
        if MODE == "ddp":
            self.layer = DistributedDataParallel(self.layer)
        if MODE == "tp":
            pairs = [dist.new_group([n, n + 1]) for n in range(0, self.world, 2)]
            others = [dist.new_group(list(range(n, self.world, 2))) for n in (0, 1)]
            self.pair, self.peers = pairs[self.rank // 2], others[self.rank % 2]

    def train(self, batch: Tensor) -> None:
        getattr(self, MODE)(batch)

    def ddp(self, batch: Tensor) -> None:
        self.layer(batch).pow(2).mean().backward()

    def tp(self, batch: Tensor) -> None:
        out = self.layer(batch)
        add_collective()
        logs = step % LOGS == LOGS - 1
        if mine() == "order" and step >= AT and logs:
            log_loss(out.mean())
        if not (mine() == "skip" and step == AT):
            dist.all_reduce(out.detach(), group=self.pair)
        loss = out.pow(2).mean()
        loss.backward()
        for parameter in self.layer.parameters():
            dist.all_reduce(parameter.grad, group=self.peers)
        if logs:
            log_loss(loss)

    def pp(self, batch: Tensor) -> None:
        if self.rank % 2:
            dist.recv(batch, self.rank - 1)
        elif self.rank:
            received = dist.irecv(batch, self.rank - 1)
            assert received
            received.wait()
        out = self.layer(batch)
        if self.rank + 1 < self.world:
            dist.send(out.detach(), self.rank + 1)
        loss = out.pow(2).mean()
        loss.backward()
        dist.all_reduce(loss.detach())


def main() -> None:
    global step
    torch.set_num_threads(1)
    world = int(said("WORLD_SIZE", "OMPI_COMM_WORLD_SIZE", "SLURM_NTASKS"))
    dist.init_process_group("gloo", rank=dist_rank(), world_size=world, timeout=timedelta(seconds=900))
    spread = Spread()
    with (FOLDER / f"{TIMES}.{spread.rank}").open("w", buffering=1) as times:
        loader = DataLoader(Samples(), batch_size=BATCH, num_workers=int("loader" in FAULTS))
        for step, batch in enumerate(loader):
            make_group()
            spread.train(batch)
            mark("step", str(step))
            times.write(f"{time.monotonic()}\n")


if __name__ == "__main__":
    with suppress(work.Left):
        main()
