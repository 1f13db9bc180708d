"""DeepSpeed on CPUs, started by its own launcher."""

from __future__ import annotations

import os
from importlib import import_module
from typing import Any

import torch
from torch import nn

from tests.trials.hang.jobs.strike import strike

deepspeed: Any = import_module("deepspeed")


def main() -> None:
    torch.set_num_threads(1)
    deepspeed.ops.__compatible_ops__.clear()  # none has to be compiled first
    deepspeed.init_distributed(dist_backend="gloo")
    model = nn.Linear(8, 8)
    engine, *_ = deepspeed.initialize(
        model=model,
        optimizer=torch.optim.SGD(model.parameters(), lr=0.01),
        config={"train_micro_batch_size_per_gpu": 4, "zero_optimization": {"stage": 0}},
    )
    for number in range(1_000_000):
        strike(int(os.environ["RANK"]), number)
        engine.backward(engine(torch.randn(4, 8)).pow(2).mean())
        engine.step()


if __name__ == "__main__":
    main()
