"""Jobs of frameworks: the first argument names one. FAULT, VICTIM and AT choose what a rank of it does."""

import os
import sys
import time
from collections.abc import Iterator
from datetime import timedelta
from importlib import import_module
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, multiprocessing, nn
from torch.utils.data import DataLoader, Dataset, TensorDataset

from tests.trials.hang import BEFORE
from tests.trials.hang.strike import strike

WORLD = 3
TIMEOUT = timedelta(seconds=1800)
ATTEMPTS = 6
"""Ray gives its own daemons 30 s to begin, which is not enough on a busy machine."""


def turns() -> Iterator[int]:
    """As many as a job makes."""
    for turn in range(1_000_000):
        time.sleep(0.02)
        yield turn


def rank() -> int:
    return int(os.environ["RANK"])


def sgd(model: nn.Module) -> torch.optim.Optimizer:
    return torch.optim.SGD(model.parameters(), lr=0.01)


def batches() -> DataLoader[Any]:
    return DataLoader(TensorDataset(torch.randn(400_000, 8)), batch_size=4)


def train(number: int, size: int, meeting: str = "env://") -> None:
    """TITLE gives each rank a title with setproctitle."""
    torch.set_num_threads(1)
    if title := os.environ.get("TITLE"):
        setproctitle: Any = import_module("setproctitle")
        setproctitle.setproctitle(f"{title} [{number}/{size}] epoch 3")
    strike(number, BEFORE)
    dist.init_process_group("gloo", init_method=meeting, rank=number, world_size=size, timeout=TIMEOUT)
    for step in turns():
        strike(number, step)
        dist.all_reduce(torch.ones(4))


def plain() -> None:
    """A plain training loop, started by torchrun."""
    train(rank(), int(os.environ["WORLD_SIZE"]))


def _numbers() -> tuple[int, int, int]:
    """How many ranks run here, the number of the first of them, and how many there are in all."""
    here, first, size = map(int, sys.argv[2:])
    return here, first, size


def spawned(gpu: int, first: int, size: int) -> None:
    """As many write it: no variable of the loop has the number of the rank."""
    train(first + gpu, size)


def spawn() -> None:
    here, *rest = _numbers()
    multiprocessing.start_processes(spawned, args=tuple(rest), nprocs=here, start_method="spawn")  # type: ignore[attr-defined, no-untyped-call]


def fork() -> None:
    here, first, size = _numbers()
    train(first + next((each for each in range(1, here) if os.fork() == 0), 0), size)


def accelerate() -> None:
    """A loop, started by torchrun."""
    accelerator = import_module("accelerate").Accelerator(cpu=True)
    model = nn.Linear(8, 8)
    model, optimizer, loader = accelerator.prepare(model, sgd(model), batches())
    for number, (batch,) in enumerate(loader):
        strike(accelerator.process_index, number)
        accelerator.backward(model(batch).pow(2).mean())
        optimizer.step()
        optimizer.zero_grad()


def deepspeed() -> None:
    """On CPUs, started by its own launcher."""
    own: Any = import_module("deepspeed")
    own.ops.__compatible_ops__.clear()  # none has to be compiled first
    own.init_distributed(dist_backend="gloo")
    model = nn.Linear(8, 8)
    config = {"train_micro_batch_size_per_gpu": 4, "zero_optimization": {"stage": 0}}
    engine, *_ = own.initialize(model=model, optimizer=sgd(model), config=config)
    for number in range(1_000_000):
        strike(rank(), number)
        engine.backward(engine(torch.randn(4, 8)).pow(2).mean())
        engine.step()


class Block(nn.Module):
    """The middle one of three fails."""

    step = 0

    def __init__(self, number: int) -> None:
        super().__init__()
        self.number = number
        self.inner = nn.Linear(32, 32)

    def forward(self, batch: Tensor) -> Tensor:
        if self.number == 1:
            strike(rank(), Block.step)
        return torch.tanh(self.inner(batch))


def fsdp() -> None:
    """FSDP2: each layer is gathered before it computes."""
    from torch.distributed.fsdp import fully_shard

    dist.init_process_group("gloo", timeout=TIMEOUT)
    model = nn.Sequential(*map(Block, range(3)))
    for block in model:
        fully_shard(block)
    fully_shard(model)
    optimizer = sgd(model)
    for Block.step in range(1_000_000):
        model(torch.randn(4, 32)).pow(2).mean().backward()
        optimizer.step()
        optimizer.zero_grad()


def lightning() -> None:
    """As people run it: `python train.py` is rank 0, and starts the other ranks."""
    own: Any = import_module("lightning")

    class Model(own.LightningModule):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.Linear(8, 8)

        def training_step(self, batch: list[Tensor], batch_idx: int) -> Tensor:
            strike(self.global_rank, batch_idx)
            loss: Tensor = self.layer(batch[0]).pow(2).mean()
            return loss

        def configure_optimizers(self) -> torch.optim.Optimizer:
            return sgd(self)

    quiet = {"logger": False, "enable_checkpointing": False, "enable_progress_bar": False}
    trainer = own.Trainer(accelerator="cpu", devices=WORLD, strategy="ddp", max_epochs=1, **quiet)
    trainer.fit(Model(), batches())


def mpi4py() -> None:
    """It alone, without torch in its loop."""
    mpi: Any = import_module("mpi4py.MPI")
    for turn in turns():
        strike(mpi.COMM_WORLD.Get_rank(), turn)
        mpi.COMM_WORLD.allreduce(1)


def in_notebook() -> None:
    accelerator = import_module("accelerate").Accelerator(cpu=True)
    torch.set_num_threads(1)
    for step in turns():
        strike(accelerator.process_index, step)
        dist.all_reduce(torch.ones(4))


def launch() -> None:
    """What a cell of `train.ipynb` calls: accelerate forks the ranks out of the notebook's kernel."""
    launcher = import_module("accelerate").notebook_launcher
    launcher(in_notebook, num_processes=WORLD, use_port=os.environ["MASTER_PORT"])


class Worker:
    def fit(self, number: int, meeting: str) -> None:
        from tests.trials.hang import jobs

        jobs.train(number, jobs.WORLD, meeting)


def _ray_begins(attempt: int) -> bool:
    own: Any = import_module("ray")
    folder = f"{os.environ['FOLDER']}/ray{attempt}"
    try:
        own.init(num_cpus=WORLD, include_dashboard=False, object_store_memory=80_000_000, _temp_dir=folder)
    except Exception as why:
        print(f"Ray did not begin: {why}", flush=True)
        own.shutdown()
        return False
    return True


def ray() -> None:
    """Actors that train together, as the trainers on top of Ray have them."""
    own: Any = import_module("ray")
    if not any(map(_ray_begins, range(ATTEMPTS))):
        sys.exit("Ray never began")
    workers = [own.remote(num_cpus=1)(Worker).remote() for _ in range(WORLD)]
    meeting = f"tcp://127.0.0.1:{sys.argv[2]}"
    own.get([worker.fit.remote(number, meeting) for number, worker in enumerate(workers)])


def answer(number: int, turn: int) -> int:
    strike(number, turn)
    return turn


def rpc() -> None:
    """A master that asks its workers; the work that VICTIM does in its thread is the fault."""
    from torch.distributed import rpc as calls

    world = int(os.environ["WORLD_SIZE"])
    calls.init_rpc(f"worker{rank()}", rank=rank(), world_size=world)  # type: ignore[no-untyped-call]
    for turn in turns() if rank() == 0 else ():
        for other in range(1, world):
            calls.rpc_sync(f"worker{other}", answer, args=(other, turn), timeout=0)
    calls.shutdown()


def transformers() -> None:
    """The Trainer, started by torchrun."""
    own: Any = import_module("transformers")

    class Rows(Dataset[dict[str, Tensor]]):
        def __len__(self) -> int:
            return 1_000_000

        def __getitem__(self, index: int) -> dict[str, Tensor]:
            return {"x": torch.full((8,), float(index % 7))}

    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.Linear(8, 8)

        def forward(self, x: Tensor) -> dict[str, Tensor]:
            return {"loss": self.layer(x).pow(2).mean()}

    class Strikes(own.TrainerCallback):  # type: ignore[misc]
        def on_step_begin(self, _args: Any, state: Any, _control: Any, **_: Any) -> None:
            strike(rank(), state.global_step)

    arguments = own.TrainingArguments(
        output_dir=os.environ["FOLDER"],
        use_cpu=True,
        ddp_backend="gloo",
        max_steps=1_000_000,
        per_device_train_batch_size=2,
        report_to=[],
        save_strategy="no",
        logging_strategy="no",
        disable_tqdm=True,
    )
    own.Trainer(model=Model(), args=arguments, train_dataset=Rows(), callbacks=[Strikes()]).train()


if __name__ == "__main__":
    torch.set_num_threads(1)
    own = [word for word in sys.argv[1:] if not word.startswith("--local_rank")]  # of DeepSpeed
    globals()[own[0]]()
