"""A small training over gloo with a fault that can be changed while it runs.

FOLDER/fault holds a fault, its ranks (1,3; -1: all) and milliseconds. Each rank writes FOLDER/truth.RANK:
when each step began, had its data, was ready and was done, by the clock that all processes share.
KIND is ddp, tp, pipeline or spin (a stand-in for a device, for which the host spins in `synchronize`). The
step itself sleeps: a rank needs little of a processor.
"""

from __future__ import annotations

import ctypes
import gc
import os
import random
import struct
import sys
import threading
import time
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, Dataset

RANK, WORLD = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
FOLDER = Path(os.environ["FOLDER"])
KIND = os.environ.get("KIND", "ddp")
BASE = float(os.environ.get("BASE_MS", "30")) / 1000
WORKERS = int(os.environ.get("WORKERS", "0"))
SLOW_MS = 50.0
HEAP: list[list[int]] = []


class Fault:
    """What FOLDER/fault says, read again when it has changed."""

    def __init__(self) -> None:
        self.changed = 0
        self.name, self.ranks, self.seconds = "none", {-1}, 0.0
        self.read()

    def read(self) -> None:
        changed = (FOLDER / "fault").stat().st_mtime_ns
        if changed != self.changed:
            self.name, ranks, ms = (FOLDER / "fault").read_text().split()
            self.ranks, self.seconds = {int(each) for each in ranks.split(",")}, float(ms) / 1000
            self.changed = changed

    def mine(self, *names: str) -> float:
        """How long this rank takes longer by one of these faults."""
        return self.seconds if self.name in names and self.ranks & {RANK, -1} else 0.0


FAULT = Fault()


class Shards(Dataset[torch.Tensor]):
    def __len__(self) -> int:
        return 1 << 30

    def __getitem__(self, index: int) -> torch.Tensor:
        if WORKERS:
            FAULT.read()
        if longer := FAULT.mine("loader"):
            time.sleep(longer + (BASE if WORKERS else 0))
        if longer := FAULT.mine("reads"):
            read_shard(longer)
        return torch.ones(8, 64)


def read_shard(seconds: float) -> None:
    """From a pipe that is filled at 10 MB/s."""
    left = int(1e7 * seconds)
    with (FOLDER / "shard").open("rb", buffering=0) as file:
        while left > 0 and (data := file.read(min(left, 65536))):
            left -= len(data)


def forward(step: int) -> None:
    time.sleep(BASE)
    if longer := FAULT.mine("uneven", "little"):
        time.sleep(longer)
    if longer := FAULT.mine("jitter"):
        time.sleep(random.random() * longer)
    if longer := FAULT.mine("computes"):
        burn(longer)
    if longer := FAULT.mine("gc"):
        collect(longer)
    if longer := FAULT.mine("fsync"):
        log_everything(longer)
    if FAULT.mine("checkpoint") and step % 20 == 19:
        save_checkpoint()
    if FAULT.mine("evaluation") and step % 20 == 19:
        evaluate()


def burn(seconds: float) -> None:
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        sum(range(2_000))


def collect(seconds: float) -> None:
    if not HEAP:
        HEAP.extend([[each] for each in range(100_000)])
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        gc.collect()


def log_everything(seconds: float) -> None:
    end = time.monotonic() + seconds
    with (FOLDER / f"log.{RANK}").open("wb") as file:
        while time.monotonic() < end:
            file.write(bytes(50_000))
            os.fsync(file.fileno())


def save_checkpoint() -> None:
    end = time.monotonic() + 0.8
    with (FOLDER / f"model.{RANK}").open("wb") as file:
        while time.monotonic() < end:
            file.write(bytes(500_000))
            file.flush()
            time.sleep(0.02)


def evaluate() -> None:
    time.sleep(0.8)


def hold_gil() -> None:
    usleep = ctypes.PyDLL(None).usleep
    while True:
        FAULT.read()
        if longer := FAULT.mine("gil"):
            usleep(int(longer * 1e6))
            time.sleep(0.01)
        else:
            time.sleep(0.1)


class Truth:
    def __init__(self) -> None:
        self.file = (FOLDER / f"truth.{RANK}").open("ab", buffering=0)
        self.rows: list[bytes] = []

    def add(self, *times: float) -> None:
        self.rows.append(struct.pack("4d", *times))
        if len(self.rows) >= 5:
            self.file.write(b"".join(self.rows))
            self.rows.clear()


def train(share: Callable[[torch.Tensor], None], start_and_end: bool = True) -> None:
    truth, clock = Truth(), time.monotonic
    data = iter(
        DataLoader(Shards(), batch_size=None, num_workers=WORKERS, prefetch_factor=1 if WORKERS else None)
    )
    step = 0
    while True:
        FAULT.read()
        began = clock()
        batch = next(data)
        had = clock()
        if start_and_end:
            forward(step)
        ready = clock()
        share(batch)
        truth.add(began, had, ready, clock())
        step += 1


def ddp() -> Callable[[torch.Tensor], None]:
    model = DistributedDataParallel(torch.nn.Sequential(torch.nn.Linear(64, 400), torch.nn.Linear(400, 400)))
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)

    def share(batch: torch.Tensor) -> None:
        model(batch).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()

    return share


def tensor_parallel() -> Callable[[torch.Tensor], None]:
    """Pairs of ranks share each layer; ranks of equal place in their pair share gradients."""
    pairs = [dist.new_group([base, base + 1]) for base in range(0, WORLD, 2)]
    rows = [dist.new_group([*range(place, WORLD, 2)]) for place in (0, 1)]
    activation, gradient = torch.ones(20_000), torch.ones(100_000)

    def share(_: torch.Tensor) -> None:
        for _layer in range(3):
            dist.all_reduce(activation, group=pairs[RANK // 2])
        dist.all_reduce(gradient, group=rows[RANK % 2])

    return share


def pipeline() -> Callable[[torch.Tensor], None]:
    activation = torch.ones(20_000)

    def share(_: torch.Tensor) -> None:
        for way in (1, -1):
            for _batch in range(4):
                if 0 <= RANK - way < WORLD:
                    dist.recv(activation, RANK - way)
                time.sleep(BASE / 8 + FAULT.mine("stage") / 8)
                if 0 <= RANK + way < WORLD:
                    dist.send(activation, RANK + way)

    return share


def spinning() -> Callable[[torch.Tensor], None]:
    sys.path.insert(0, str(Path(__file__).with_name("device") / "site-packages"))
    from torch_npu.npu import Device  # type: ignore[import-not-found]

    gradient = torch.ones(60_000)

    def compute() -> None:
        time.sleep(BASE + FAULT.mine("device"))
        dist.all_reduce(gradient)

    device = Device(compute)

    def share(_: torch.Tensor) -> None:
        device.launch()
        device.synchronize()

    return share


def main() -> None:
    torch.set_num_threads(1)
    dist.init_process_group("gloo", timeout=timedelta(seconds=600))
    threading.Thread(target=hold_gil, daemon=True).start()
    kinds = {"ddp": ddp, "tp": tensor_parallel, "pipeline": pipeline, "spin": spinning}
    train(kinds[KIND](), KIND != "pipeline")


if __name__ == "__main__":
    main()
