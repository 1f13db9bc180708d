"""Lightning as people run it: `python train.py` is rank 0, and starts the other ranks."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset

from tests.trials.hang.jobs.strike import strike

lightning: Any = import_module("lightning")


class Model(lightning.LightningModule):  # type: ignore[misc]
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(8, 8)

    def training_step(self, batch: list[Tensor], batch_idx: int) -> Tensor:
        strike(self.global_rank, batch_idx)
        loss: Tensor = self.layer(batch[0]).pow(2).mean()
        return loss

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return torch.optim.SGD(self.parameters(), lr=0.01)


def main() -> None:
    torch.set_num_threads(1)
    trainer = lightning.Trainer(
        accelerator="cpu",
        devices=3,
        strategy="ddp",
        max_epochs=1,
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
    )
    trainer.fit(Model(), DataLoader(TensorDataset(torch.randn(400_000, 8)), batch_size=4))


if __name__ == "__main__":
    main()
