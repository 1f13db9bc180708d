"""The collectives of the training and of the audit after it. Without torch: the controller counts with it."""

from __future__ import annotations

from doctor.smoke.onhost.corpus import LENGTH, SEQUENCES
from doctor.smoke.onhost.parameters import LAYERS, WIDTH, parameters
from doctor.smoke.onhost.shape import CellShape, CollectiveCall

VOTES = 3
"""This many replicas compute each batch in an audit: if two agree, the third is wrong."""


def train_calls(shape: CellShape) -> list[CollectiveCall]:
    """The calls of all steps of the training; every rank enters the same."""
    calls: list[CollectiveCall] = []
    for _ in range(shape.waver_tries):
        calls += [*_gradient_calls(shape, 0), *_sum_calls(shape, 0)]
    if shape.waver_tries and shape.world > 1:
        calls.append(CollectiveCall(0, "world", "all_reduce_max", "float32", 4))
    for step in range(shape.steps):
        calls += [*_gradient_calls(shape, step), *_sum_calls(shape, step)]
        if audited(shape, step):
            for _ in replicas_again(shape, 0):
                calls += _gradient_calls(shape, step)
    return calls


def audit_calls(shape: CellShape) -> list[CollectiveCall]:
    """The call after the audit. Each rank audits alone; then all wait, so that none leaves early."""
    return [CollectiveCall(0, "world", "all_reduce", "float32", 4)] if shape.world > 1 else []


def _gradient_calls(shape: CellShape, step: int) -> list[CollectiveCall]:
    """One forward and backward pass through a model that is split over a tensor-parallel group."""
    if shape.tp == 1:
        return []
    rows = 4 * SEQUENCES * LENGTH
    activations = CollectiveCall(step, "tp", "all_reduce", "float32", rows * WIDTH)
    layers = [activations] * (1 + 2 * LAYERS)
    loss = [
        CollectiveCall(step, "tp", "all_reduce_max", "float32", rows),
        CollectiveCall(step, "tp", "all_reduce", "float32", 2 * rows),
    ]
    return layers + loss + layers


def _sum_calls(shape: CellShape, step: int) -> list[CollectiveCall]:
    """The sum of the gradients of all replicas."""
    if shape.dp == 1:
        return []
    size = 4 * sum(parameter.elements for parameter in parameters(shape.tp))
    slots = shape.tp if shape.dp_in_world else 1
    return [CollectiveCall(step, shape.sums_in, "all_reduce", "float32", slots * size)]


def shown(shape: CellShape, step: int) -> bool:
    """Whether a rank reports the hashes of its batch at this step."""
    return step < 3 or step % 10 == 0 or step == shape.steps - 1


def audited(shape: CellShape, step: int) -> bool:
    """Whether replicas compute the gradient of this step again."""
    return step % 10 == 9 or step == shape.steps - 1


def replicas_again(shape: CellShape, dp: int) -> list[int]:
    """The replicas whose batches replica `dp` computes again in the training, itself first."""
    return voters(shape.dp, dp, max(shape.hosts) // shape.tp)


def places_again(shape: CellShape, place: int) -> list[int]:
    """The places whose batches a rank computes alone, its own first."""
    return voters(shape.world, place, max(shape.hosts))


def voters(count: int, own: int, apart: int = 1) -> list[int]:
    """A rank's own number, and those `apart` before it: on other hosts, so that ranks that share a fault of
    their host do not outvote the others. If there are too few hosts, neighbours fill the places.
    """
    backs = dict.fromkeys(back % count for back in (0, apart, 2 * apart, 1, 2))
    return [(own - back) % count for back in list(backs)[:VOTES]]


GOLDEN_SIZE = 256
GOLDEN = "e1b359d627de9cf5"
"""The hash that `audit.golden` gives on a healthy device."""
