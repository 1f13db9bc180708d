"""A loop with accelerate, started by torchrun."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from tests.trials.hang.jobs.strike import strike

accelerate: Any = import_module("accelerate")


def main() -> None:
    torch.set_num_threads(1)
    accelerator = accelerate.Accelerator(cpu=True)
    model = nn.Linear(8, 8)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    loader = DataLoader(TensorDataset(torch.randn(400_000, 8)), batch_size=4)
    model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
    for number, (batch,) in enumerate(loader):
        strike(accelerator.process_index, number)
        accelerator.backward(model(batch).pow(2).mean())
        optimizer.step()
        optimizer.zero_grad()


if __name__ == "__main__":
    main()
