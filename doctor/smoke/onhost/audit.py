"""Whether a rank computes what the others do: each alone, on its own device, without any collective."""

from __future__ import annotations

import math
from functools import lru_cache

from doctor.smoke.onhost.comm import Comm
from doctor.smoke.onhost.corpus import batch_of
from doctor.smoke.onhost.encoding import decoded, encoded
from doctor.smoke.onhost.framework import Framework
from doctor.smoke.onhost.parameters import initial_parameters
from doctor.smoke.onhost.random_bytes import drawn, hashed
from doctor.smoke.onhost.train import Trainer
from doctor.smoke.onhost.trainplan import GOLDEN_SIZE, places_again

LARGEST = 2**31 - 1


def run(trainer: Trainer) -> None:
    """Compute gradients of the rank's own batch and of others, on a whole model; then wait for all ranks."""
    comm = trainer.comm
    shape = comm.shape._replace(dp=1, tp=1, hosts=(1,), pp=1, cp=1, ep=1, micro=0, vpp=1, zero=0, ps=0)
    framework = comm.framework
    model = framework.model(Comm(shape, 0, comm.page, framework, dict.fromkeys(shape.groups), comm.say))
    model.load(initial_parameters(shape, 0))
    votes, sums = [], []
    for place in places_again(comm.shape, comm.place):
        model.gradient(framework.sample(batch_of(shape, comm.shape.steps, place)))
        votes.append(hashed(framework.bytes_of(model.grad)))
        sums.append(framework.projection(model.grad))
    comm.say({"ev": "solo", "votes": votes, **trainer.numbers(sums)})
    comm.all_reduce(comm.ones(1), "world")


def golden(framework: Framework) -> str:
    """Hash of an exact product, computed at once and in parts; if one is wrong, of that one."""
    return _hashed(*framework.products(*_factors(), GOLDEN_SIZE))


@lru_cache(maxsize=1)
def _factors() -> tuple[bytes, bytes]:
    values = encoded([byte % 3 - 1 for byte in drawn("golden", 2 * GOLDEN_SIZE**2)], "float32")
    half = len(values) // 2
    return values[:half], values[half:]


@lru_cache(maxsize=4)
def _hashed(at_once: bytes, in_parts: bytes) -> str:
    """Kept, because a sound device gives the same bytes each time and this takes longer than the product."""
    whole = tuple(map(_whole, decoded(at_once, "float32")))
    wrong = [found for found in (at_once, in_parts) if decoded(found, "float32") != whole]
    return hashed(wrong[0] if wrong else encoded(whole, "int32"))


def _whole(value: float) -> int:
    return int(min(max(value, -LARGEST), LARGEST)) if math.isfinite(value) else 0
