"""The Trainer of transformers, started by torchrun."""

from __future__ import annotations

import os
from importlib import import_module
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.data import Dataset

from tests.trials.hang.jobs.strike import strike

transformers: Any = import_module("transformers")


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


class Strikes(transformers.TrainerCallback):  # type: ignore[misc]
    def on_step_begin(self, _args: Any, state: Any, _control: Any, **_: Any) -> None:
        strike(int(os.environ["RANK"]), state.global_step)


def main() -> None:
    torch.set_num_threads(1)
    arguments = transformers.TrainingArguments(
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
    trainer = transformers.Trainer(model=Model(), args=arguments, train_dataset=Rows(), callbacks=[Strikes()])
    trainer.train()


if __name__ == "__main__":
    main()
