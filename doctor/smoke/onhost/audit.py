"""Whether a rank computes what the others do: each alone, on its own device, without any collective."""

from __future__ import annotations

from typing import Any

import torch

from doctor.smoke.onhost.comm import Comm
from doctor.smoke.onhost.corpus import batch_of
from doctor.smoke.onhost.model import Model, bytes_of, sample_of, tensor_of
from doctor.smoke.onhost.parameters import initial_parameters
from doctor.smoke.onhost.random_bytes import drawn, hashed
from doctor.smoke.onhost.train import Trainer, projection, signs
from doctor.smoke.onhost.trainplan import GOLDEN_SIZE, places_again


def run(trainer: Trainer) -> None:
    """Compute gradients of the rank's own batch and of others, on a whole model; then wait for all ranks."""
    comm = trainer.comm
    shape = comm.shape._replace(dp=1, tp=1, hosts=(1,))
    alone = Comm(shape, 0, comm.page, comm.device, dict.fromkeys(shape.groups), comm.say)
    model = Model(alone)
    model.load(initial_parameters(shape, 0))
    votes, sums, fixed = [], [], signs(model.grad.numel())
    for place in places_again(comm.shape, comm.place):
        model.gradient(sample_of(batch_of(shape, comm.shape.steps, place), comm.device.torch))
        votes.append(hashed(bytes_of(model.grad)))
        sums.append(projection(model.grad, fixed))
    comm.say({"ev": "solo", "votes": votes, **trainer.numbers(sums)})
    comm.all_reduce(comm.ones(1), "world")


def golden(device: Any) -> str:
    """Hash of a product of two matrices of -1, 0 and 1, which is exact on every device. It is computed at
    once and in parts, as the model does. If the first is not whole or the second differs, that one is hashed.
    """
    values = tensor_of(drawn("golden", 2 * GOLDEN_SIZE**2), torch.uint8).remainder(3).float() - 1
    left, right = values.view(2, GOLDEN_SIZE, GOLDEN_SIZE).to(device.torch)
    at_once, in_parts = left @ right, (left.view(4, -1, GOLDEN_SIZE) @ right).view_as(left)
    whole = at_once.cpu().to(torch.int32)
    wrong = [found for each in (at_once, in_parts) if not torch.equal(found := each.cpu(), whole.float())]
    return hashed(bytes_of(wrong[0] if wrong else whole))
