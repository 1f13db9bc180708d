"""The training of one rank, and what it reports of every step.

Faults on purpose replace methods of `Trainer`; nothing here knows of them.
"""

from __future__ import annotations

import math
import time
from typing import Any

import torch
from torch import Tensor
from torch.optim.adam import adam

from doctor.smoke.onhost.comm import Comm
from doctor.smoke.onhost.corpus import batch_of
from doctor.smoke.onhost.model import DeviceBatch, Model, bytes_of, sample_of, tensor_of
from doctor.smoke.onhost.parameters import initial_parameters
from doctor.smoke.onhost.random_bytes import drawn, hashed
from doctor.smoke.onhost.streamplan import stream_seed
from doctor.smoke.onhost.streams import Streams
from doctor.smoke.onhost.trainplan import audited, replicas_again, shown

RATE = 3e-3
WARM_UP = 5


class Trainer:
    """Data parallel over `dp`, tensor parallel over `tp`."""

    def __init__(self, comm: Comm) -> None:
        self.comm = comm
        self.shape = comm.shape
        self.dp = comm.shape.dp_of(comm.place)
        self.device = comm.device
        self.model = Model(comm)
        self.streams = Streams(comm.device)
        self.moments = torch.zeros_like(self.model.flat), torch.zeros_like(self.model.flat)
        self.count = torch.tensor(0.0)
        self.signs = _signs(self.model.flat.numel())

    def run(self) -> None:
        self.begin()
        for step in range(self.shape.steps):
            self.comm.page.enter_phase("train", step)
            self.step_begins(step)
            self.step(step)

    def begin(self) -> None:
        self.streams.seed(stream_seed(self.shape, self.dp))
        self.model.load(self.initial())
        self.comm.say({"ev": "init", "params": self.fingerprint()})

    def step(self, step: int) -> None:
        sample, streams = self.batch(step), self.streams.draw()
        if shown(self.shape, step):
            self._say_batch(step, sample, streams)
        began, burnt, waited = time.perf_counter(), time.thread_time(), self.comm.wait
        loss = self.gradient(sample)
        self.device.synchronise()
        cpu = time.thread_time() - burnt
        compute = max(0.0, time.perf_counter() - began - (self.comm.wait - waited))
        own = self._projection()
        used = self.fingerprint(self.model.grad) if audited(self.shape, step) else ""
        self.reduce()
        wait = self.comm.wait - waited
        reduced = self._projection()[0]
        if used:
            self._audit(step, used)
        self.update(step)
        self.comm.say(
            {
                "ev": "step",
                "step": step,
                "loss": loss if math.isfinite(loss) else None,
                "finite": math.isfinite(loss) and math.isfinite(own[1]),
                "params": self.fingerprint(),
                "own": own if math.isfinite(own[1]) else None,
                "reduced": reduced if math.isfinite(reduced) else None,
                "cpu": cpu if self.device.torch.type == "cpu" else compute,
                "compute": compute,
                "wait": wait,
            }
        )

    # What faults on purpose replace.

    def step_begins(self, step: int) -> None:
        """Nothing, unless a fault is due."""

    def initial(self) -> bytes:
        return initial_parameters(self.shape, self.comm.place)

    def batch(self, step: int) -> DeviceBatch:
        return self.batch_of(step, self.dp)

    def gradient(self, sample: DeviceBatch) -> float:
        """Leave the rank's own gradient in the model; gives the loss."""
        return self.model.gradient(sample)

    def reduce(self) -> None:
        """Sum the gradient over the replicas."""
        self.comm.all_reduce(self.model.grad, "dp")

    def rate(self, step: int) -> float:
        return RATE * min(1.0, (step + 1) / WARM_UP)

    def update(self, step: int) -> None:
        """One step of Adam with the mean of the replicas' gradients.

        torch's function and not its class: the class imports the whole compiler at first use, which takes
        seconds and makes a folder in /tmp.
        """
        self.model.grad.div_(self.shape.dp)
        with torch.no_grad():
            adam(
                [self.model.flat],
                [self.model.grad],
                [self.moments[0]],
                [self.moments[1]],
                [],
                [self.count],
                foreach=False,
                fused=False,
                amsgrad=False,
                beta1=0.9,
                beta2=0.99,
                lr=self.rate(step),
                weight_decay=0.0,
                eps=1e-8,
                maximize=False,
            )

    # What faults never replace.

    def batch_of(self, step: int, dp: int) -> DeviceBatch:
        """The batch that a replica should have."""
        return sample_of(batch_of(self.shape, step, dp), self.device.torch)

    def fingerprint(self, x: Tensor | None = None) -> str:
        """Hash of a tensor, or else of the parameters."""
        return hashed(bytes_of(self.model.flat if x is None else x))

    def _audit(self, step: int, used: str) -> None:
        """Compute the gradients of some replicas again, before the parameters move on."""
        reduced = self.model.grad.clone()
        votes = []
        for replica in replicas_again(self.shape, self.dp):
            self.model.gradient(self.batch_of(step, replica))
            votes.append(self.fingerprint(self.model.grad))
        self.model.grad.copy_(reduced)
        self.comm.say({"ev": "audit", "step": step, "used": used, "votes": votes})

    def _say_batch(self, step: int, sample: DeviceBatch, streams: dict[str, str]) -> None:
        hashes: dict[str, Any] = {name: self.fingerprint(x) for name, x in sample._asdict().items()}
        self.comm.say({"ev": "batch", "step": step, **hashes, "streams": streams})

    def _projection(self) -> tuple[float, float]:
        """The gradient summed with fixed signs, and without any; in double precision, on the CPU."""
        gradient = self.model.grad.cpu().double()
        return float(gradient @ self.signs), float(gradient.abs().sum())


def _signs(count: int) -> Tensor:
    return (tensor_of(drawn("signs", count), torch.uint8) & 1).double() * 2 - 1
