"""A small training with a fault that can be changed while it runs.

FOLDER/fault holds faults, one a line: its name, its ranks (1,3; -1: all) and milliseconds. Each rank writes
FOLDER/truth.RANK: when each step began, had its data, was ready and was done, by the clock that all processes
share.
KIND is plain (an all_reduce a step), ddp, fsdp, deepspeed, tp, pipeline, trainer (of transformers), mpi,
spin (a stand-in for a device, for which the host spins in `synchronize`) or nccl (one with NCCL's thread).
The step itself sleeps: a rank needs little of a processor. What only some kinds need is imported there: it
takes a second or more.
"""

import ctypes
import gc
import os
import random
import struct
import sys
import threading
import time
from collections.abc import Callable, Iterator
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

RANK = int(os.environ.get("RANK") or os.environ["OMPI_COMM_WORLD_RANK"])
WORLD = int(os.environ.get("WORLD_SIZE") or os.environ["OMPI_COMM_WORLD_SIZE"])
FOLDER = Path(os.environ["FOLDER"])
KIND = os.environ.get("KIND", "plain")
BASE = float(os.environ.get("BASE_MS", "30")) / 1000
WORKERS = int(os.environ.get("WORKERS", "0"))
HEAP: list[list[int]] = []
BATCH: Callable[[], Any] = float


class Fault:
    """What FOLDER/fault says, read again when it has changed."""

    def __init__(self) -> None:
        self.changed = 0
        self.rows: list[tuple[str, set[int], float]] = []
        self.read()

    def read(self) -> None:
        changed = (FOLDER / "fault").stat().st_mtime_ns
        if changed != self.changed:
            rows = (line.split() for line in (FOLDER / "fault").read_text().splitlines())
            self.rows = [(name, {*map(int, ranks.split(","))}, float(ms) / 1000) for name, ranks, ms in rows]
            self.changed = changed

    def mine(self, *names: str) -> float:
        """How long this rank takes longer by one of these faults."""
        return sum(ms for name, ranks, ms in self.rows if name in names and ranks & {RANK, -1})


FAULT = Fault()


class Shards:
    def __len__(self) -> int:
        return 1 << 30

    def __getitem__(self, index: int) -> Any:
        if WORKERS:
            FAULT.read()
        if longer := FAULT.mine("loader"):
            time.sleep(longer + (BASE if WORKERS else 0))
        if longer := FAULT.mine("reads"):
            read_shard(longer)
        return BATCH()


def read_shard(seconds: float) -> None:
    """From a pipe that is filled at 10 MB/s."""
    left = int(1e7 * seconds)
    with (FOLDER / "shard").open("rb", buffering=0) as file:
        while left > 0 and (data := file.read(min(left, 65536))):
            left -= len(data)


def forward(step: int) -> None:
    work()
    pause(step)


def work(part: float = 1.0) -> None:
    """This part of a step's."""
    longer = FAULT.mine("uneven", "little")
    time.sleep((BASE + longer) * part)
    if longer := FAULT.mine("jitter"):
        time.sleep(random.random() * longer * part)
    if longer := FAULT.mine("computes"):
        burn(longer * part)
    if longer := FAULT.mine("gc"):
        collect(longer * part)
    if longer := FAULT.mine("fsync"):
        log_everything(longer * part)


def pause(step: int) -> None:
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


def batches() -> Iterator[Any]:
    if KIND == "mpi":
        shards = Shards()
        return (shards[index] for index in range(len(shards)))
    from torch.utils.data import DataLoader, Dataset

    class OfTorch(Shards, Dataset[Any]):
        pass

    ahead = 1 if WORKERS else None
    return iter(DataLoader(OfTorch(), batch_size=None, num_workers=WORKERS, prefetch_factor=ahead))


def train(share: Callable[[Any], None], before: Callable[[int], None] = forward) -> None:
    truth, clock = Truth(), time.monotonic
    data = batches()
    step = 0
    while True:
        FAULT.read()
        began = clock()
        batch = next(data)
        had = clock()
        before(step)
        ready = clock()
        share(batch)
        truth.add(began, had, ready, clock())
        step += 1


def plain() -> Callable[[Any], None]:
    import torch
    import torch.distributed as dist

    gradient = torch.ones(60_000)

    def share(_: Any) -> None:
        dist.all_reduce(gradient)

    return share


def ddp() -> Callable[[Any], None]:
    from torch.nn.parallel import DistributedDataParallel

    return stepping(DistributedDataParallel(layers()))


def fsdp() -> Callable[[Any], None]:
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard

    model, mesh = layers(), init_device_mesh("cpu", (WORLD,))
    for layer in model:
        fully_shard(layer, mesh=mesh)
    return stepping(fully_shard(model, mesh=mesh))


def deepspeed() -> Callable[[Any], None]:
    import torch
    from deepspeed import init_distributed, initialize, ops  # type: ignore[import-not-found]

    ops.__compatible_ops__.clear()  # none has to be compiled first
    init_distributed(dist_backend="gloo")
    model = layers()
    config = {"train_micro_batch_size_per_gpu": 8, "zero_optimization": {"stage": 0}}
    engine, *_ = initialize(
        model=model, optimizer=torch.optim.SGD(model.parameters(), lr=1e-3), config=config
    )

    def share(batch: Any) -> None:
        engine.backward(engine(batch).square().mean())
        engine.step()

    return share


def layers() -> Any:
    import torch

    return torch.nn.Sequential(torch.nn.Linear(64, 400), torch.nn.Linear(400, 400))


def stepping(model: Any) -> Callable[[Any], None]:
    import torch

    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)

    def share(batch: Any) -> None:
        model(batch).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()

    return share


def trainer() -> None:
    """The loop is that of transformers; a step begins where the last one ended."""
    import torch
    from torch.utils.data import Dataset
    from transformers import Trainer, TrainerCallback, TrainingArguments  # type: ignore[import-not-found]

    truth, clock = Truth(), time.monotonic
    times = [clock()] * 3

    class OfTorch(Shards, Dataset[Any]):
        def __len__(self) -> int:
            return 1 << 16  # Their order is drawn before the first step.

        def __getitem__(self, index: int) -> Any:
            FAULT.read()
            return {"batch": super().__getitem__(index)}

    class Model(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layers = layers()
            self.step = 0

        def forward(self, batch: Any) -> Any:
            times[1] = clock()
            forward(self.step)
            times[2] = clock()
            self.step += 1
            return {"loss": self.layers(batch).square().mean()}

    class Steps(TrainerCallback):  # type: ignore[misc]
        def on_step_end(self, *_: Any, **__: Any) -> None:
            truth.add(*times, clock())
            times[0] = clock()

    how = TrainingArguments(
        output_dir=str(FOLDER / f"output.{RANK}"),
        per_device_train_batch_size=1,
        max_steps=1 << 30,
        save_strategy="no",
        logging_strategy="no",
        report_to=[],
        use_cpu=True,
        disable_tqdm=True,
        ddp_backend="gloo",
    )
    Trainer(model=Model(), args=how, train_dataset=OfTorch(), callbacks=[Steps()]).train()


def mpi() -> Callable[[Any], None]:
    import numpy
    from mpi4py import MPI  # type: ignore[import-not-found]

    comm = MPI.COMM_WORLD
    gradient = numpy.ones(60_000)

    def share(_: Any) -> None:
        comm.Allreduce(MPI.IN_PLACE, gradient)

    return share


def tensor_parallel() -> Callable[[Any], None]:
    """Pairs of ranks share each layer; ranks of equal place in their pair share gradients."""
    import torch
    import torch.distributed as dist

    pairs = [dist.new_group([base, base + 1]) for base in range(0, WORLD, 2)]
    rows = [dist.new_group([*range(place, WORLD, 2)]) for place in (0, 1)]
    activation, gradient = torch.ones(20_000), torch.ones(100_000)

    def share(_: Any) -> None:
        for _layer in range(3):
            dist.all_reduce(activation, group=pairs[RANK // 2])
        dist.all_reduce(gradient, group=rows[RANK % 2])

    return share


def pipeline() -> Callable[[Any], None]:
    import torch
    import torch.distributed as dist

    activation = torch.ones(20_000)

    def share(_: Any) -> None:
        for way in (1, -1):
            for _batch in range(4):
                if 0 <= RANK - way < WORLD:
                    dist.recv(activation, RANK - way)
                work(1 / 8)
                time.sleep(FAULT.mine("stage") / 8)
                if 0 <= RANK + way < WORLD:
                    dist.send(activation, RANK + way)

    return share


def spinning() -> Callable[[Any], None]:
    import torch
    import torch.distributed as dist

    sys.path.insert(0, str(Path(__file__).with_name("device") / "site-packages"))
    from torch_npu.npu import Device  # type: ignore[import-not-found]

    gradient = torch.ones(60_000)

    def compute() -> None:
        time.sleep(BASE + FAULT.mine("device"))
        dist.all_reduce(gradient)

    device = Device(compute, FOLDER / os.environ.get("LIBRARY", "libhccl.so"))

    def share(_: Any) -> None:
        device.launch()
        device.synchronize()

    return share


def over_nccl() -> Callable[[Any], None]:
    import torch
    import torch.distributed as dist

    sys.path.insert(0, str(Path(__file__).parent))
    from progress import Gpu  # type: ignore[import-not-found]

    gradient = torch.ones(60_000)

    def compute() -> None:
        time.sleep(BASE + FAULT.mine("device"))
        dist.all_reduce(gradient)

    gpu = Gpu(compute, FOLDER / f"gpu.{RANK}")

    def share(_: Any) -> None:
        gpu.launch()
        gpu.synchronize()

    return share


KINDS = {
    "nccl": over_nccl,
    "plain": plain,
    "ddp": ddp,
    "fsdp": fsdp,
    "deepspeed": deepspeed,
    "tp": tensor_parallel,
    "pipeline": pipeline,
    "spin": spinning,
    "mpi": mpi,
}


def main() -> None:
    threading.Thread(target=hold_gil, daemon=True).start()
    if KIND != "mpi":
        global BATCH
        import torch
        import torch.distributed as dist

        BATCH = partial(torch.ones, 8, 64)
        torch.set_num_threads(1)
        if KIND != "trainer":
            dist.init_process_group("gloo", timeout=timedelta(seconds=600))
    if KIND == "trainer":
        trainer()
    else:
        train(KINDS[KIND](), pause if KIND == "pipeline" else forward)


if __name__ == "__main__":
    main()
