"""Which parameters a rank holds, in which order, and their values before the first step. Without torch.

The model is a two-layer transformer, split as in Megatron-LM: the vocabulary, the heads and the inner layer
are divided among the ranks of a tensor-parallel group, the rest is the same on all of them.
https://arxiv.org/abs/1909.08053
"""

from __future__ import annotations

import math
from array import array
from functools import lru_cache
from typing import NamedTuple

from doctor.smoke.onhost.random_bytes import words
from doctor.smoke.onhost.shape import CellShape

VOCABULARY = 64
POSITIONS = 32
WIDTH = 64
HEADS = 4
INNER = 128
LAYERS = 2
BLOCKS = tuple((layer, block) for layer in range(LAYERS) for block in ("attention", "inner"))


class Parameter(NamedTuple):
    """All its values are `fill`; without it, they are drawn evenly from -2**reach to 2**reach."""

    name: str
    size: tuple[int, ...]
    shared: bool
    reach: int = 0
    fill: float | None = None

    @property
    def elements(self) -> int:
        return math.prod(self.size)


def blocks(stages: int, stage: int) -> tuple[tuple[int, str], ...]:
    """The blocks of one of so many stages; a stage of many may have none, and only pass on what it gets."""
    return BLOCKS[len(BLOCKS) * stage // stages : len(BLOCKS) * (stage + 1) // stages]


def parameters(tp: int, stages: int = 1, stage: int = 0, vpp: int = 1) -> list[Parameter]:
    """In the order in which they lie in memory. The first and the last stage both have the embedding."""
    found = []
    if stage in (0, stages - 1):
        found.append(Parameter("embedding", (VOCABULARY // tp, WIDTH), False, reach=-2))
    if stage == 0:
        found.append(Parameter("positions", (POSITIONS, WIDTH), True, reach=-5))
    held = [blocks(stages * vpp, number) for number in range(stage, stages * vpp, stages)]
    for layer, block in sum(held, ()):
        into, out = ("qkv", 3 * WIDTH), ("out", WIDTH)
        if block == "inner":
            into, out = ("up", INNER), ("down", INNER)
        found += [
            *_norm(f"{layer}.{block}"),
            Parameter(f"{layer}.{into[0]}", (into[1] // tp, WIDTH), False, reach=-2),
            Parameter(f"{layer}.{out[0]}", (WIDTH, out[1] // tp), False, reach=-2 - (block == "inner")),
        ]
    return [*found, *(_norm("last") if stage == stages - 1 else ())]


def _norm(name: str) -> list[Parameter]:
    return [
        Parameter(f"{name}.scale", (WIDTH,), True, fill=1.0),
        Parameter(f"{name}.shift", (WIDTH,), True, fill=0.0),
    ]


def initial_parameters(shape: CellShape, place: int, salt: str = "") -> bytes:
    """The 32-bit floats of a rank: 24-bit integers times powers of two, which are exact everywhere."""
    held = shape.tp, shape.stages, shape.stage_of(place), shape.vpp
    return _initial(held, shape.seed, shape.tp_of(place), salt)


@lru_cache(maxsize=16)
def _initial(held: tuple[int, int, int, int], seed: int, own: int, salt: str) -> bytes:
    """Kept, because all replicas begin with the same."""
    values = array("f")
    for parameter in parameters(*held):
        if parameter.fill is not None:
            values.extend([parameter.fill] * parameter.elements)
            continue
        part = "all" if parameter.shared else own
        scale = 2.0 ** (parameter.reach - 23)
        drawn = words(f"{seed} init {parameter.name} {part}{salt}", parameter.elements)
        values.extend([((word & 0xFFFFFF) - 0x800000) * scale for word in drawn])
    return values.tobytes()
