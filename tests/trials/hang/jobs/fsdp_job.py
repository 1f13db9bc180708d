"""FSDP2: each layer is gathered before it computes."""

from __future__ import annotations

import os
from datetime import timedelta

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed.fsdp import fully_shard

from tests.trials.hang.jobs.strike import strike


class Block(nn.Module):
    def __init__(self, number: int) -> None:
        super().__init__()
        self.number = number
        self.inner = nn.Linear(32, 32)

    def forward(self, batch: Tensor) -> Tensor:
        if self.number == 1:
            strike(int(os.environ["RANK"]), step)
        return torch.tanh(self.inner(batch))


step = 0


def main() -> None:
    global step
    torch.set_num_threads(1)
    dist.init_process_group("gloo", timeout=timedelta(seconds=1800))
    model = nn.Sequential(*(Block(number) for number in range(3)))
    for block in model:
        fully_shard(block)
    fully_shard(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for step in range(1_000_000):  # noqa: B007
        model(torch.randn(4, 32)).pow(2).mean().backward()
        optimizer.step()
        optimizer.zero_grad()


if __name__ == "__main__":
    main()
