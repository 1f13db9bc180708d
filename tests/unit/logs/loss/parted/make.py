"""This made rank0.log and rank1.log: two ranks share a model, and from some step on, the second draws other
dropout masks.

    torchrun --nproc-per-node 2 tests/unit/logs/loss/parted/make.py

Both compute the same batch and average their gradients, like tensor-parallel ranks that hold copies of a
layer. At step 60, rank 1 draws once more than rank 0, so that its masks differ from then on.
"""

from __future__ import annotations

from pathlib import Path

import torch
import torch.distributed as dist
from torch import nn

STEPS, APART = 160, 60


def main() -> None:
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(7)
    data = torch.Generator().manual_seed(1)
    model = nn.Sequential(nn.Embedding(64, 32), nn.Flatten(), nn.Linear(256, 64), nn.ReLU(), nn.Dropout(0.2))
    model.append(nn.Linear(64, 64))
    optimizer = torch.optim.AdamW(model.parameters(), 3e-3)
    table = torch.randint(64, (64,), generator=data)
    with Path(__file__).with_name(f"rank{rank}.log").open("w") as log:
        for step in range(1, STEPS + 1):
            tokens = torch.randint(64, (32, 8), generator=data)
            if step == APART and rank == 1:
                torch.rand(1)
            loss = nn.functional.cross_entropy(model(tokens), table[tokens[:, 0]])
            optimizer.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            for gradient in (parameter.grad for parameter in model.parameters()):
                assert gradient is not None
                dist.all_reduce(gradient)
                gradient.div_(dist.get_world_size())
            optimizer.step()
            log.write(f"[rank{rank}]: step: {step} | loss: {loss.item():.6f}\n")
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
