"""What is known of parallel plans without asking any host: what HCCL and MindSpore document and would say.

Owns their words and lists; judges nothing.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from doctor.api import Evidence, JobPlan, Problem
from doctor.facts.system import Devices
from doctor.job.parallel import Layout

REDUCED: Mapping[str, tuple[str, ...]] = {
    "atlas-training": ("int8", "int32", "int64", "float16", "float32"),
    "atlas-a2": ("int8", "int16", "int32", "int64", "float16", "float32", "bfloat16"),
    "atlas-a3": ("int8", "int16", "int32", "int64", "float16", "float32", "bfloat16"),
    "atlas-950": (
        "int8", "int16", "int32", "int64", "uint64", "float16", "float32", "float64", "bfloat16",
    ),
}  # fmt: skip
"""Data types that HCCL reduces, by product: the lists of HcclAllReduce.md, HcclReduce.md and
HcclReduceScatter.md, which agree, in docs/zh/api_ref/comm_op_interface of
https://github.com/hicann/hccl at 09300b70 (August 2026)."""

CONVERTED = ("bool", "uint8", "complex64", "complex128")
"""Reduced as another type: torch_npu makes int32 of the first two, torch pairs of floats of the others."""

_TORCH_NAMES = {
    "float64": "at::kDouble",
    "uint16": "at::ScalarType::UInt16",
    "uint32": "at::ScalarType::UInt32",
    "uint64": "at::ScalarType::UInt64",
}
"""What torch_npu itself refuses to reduce, by the names that it prints (ProcessGroupHCCL.cpp)."""

MODES = ("stand_alone", "data_parallel", "hybrid_parallel", "semi_auto_parallel", "auto_parallel")
WRAPPED = {
    "semi_auto": "semi_auto_parallel",
    "sharding_propagation": "auto_parallel",
    "recursive_programming": "auto_parallel",
}
"""What AutoParallel(net, parallel_mode=…) takes, and the mode of set_auto_parallel_context that it equals."""


@dataclass(frozen=True, slots=True)
class ParallelJob:
    """The parallel plan that was given, and what is known of the devices that it is made for."""

    plan: JobPlan
    layout: Layout
    source: str
    devices: Mapping[str, Devices]

    @property
    def ranks(self) -> dict[str, int]:
        """Host -> its ranks, unless their number is only a default."""
        known = [h.name for h in self.plan.hosts if h.ranks and h.ranks.source != "default"]
        return {name: self.plan.ranks_on(name) for name in known}

    @property
    def counted(self) -> bool:
        return len(self.ranks) == len(self.plan.hosts)

    @property
    def products(self) -> set[str]:
        return {found.product for found in self.devices.values()}

    @property
    def product(self) -> int:
        """Devices that the factors make; one that was not said counts as 1."""
        return math.prod(self.layout.factors.values())

    @property
    def world(self) -> int | None:
        """Devices of the job: as was said, as were counted, or as the plan adds up."""
        counted = self.plan.ranks if self.counted else None
        return self.layout.world or counted or (self.product if self.layout.dp else None)

    @property
    def stage(self) -> int | None:
        """Devices of one stage of the pipeline."""
        world, pp = self.world, self.layout.pp or 1
        return world // pp if world and world % pp == 0 else None

    def wrong(self, summary: str, expected: str, actual: str, *quotes: Evidence, **more: Any) -> Problem:
        given = Evidence(self.source, str(self.layout))
        return Problem(summary, expected, actual, evidence=(*quotes, given), **more)


def known_mode(text: str) -> str | None:
    """The one of MODES that a text or a member of ParallelMode stands for."""
    member = re.fullmatch(r"(?:\w{1,40}\.){0,3}ParallelMode\.([A-Z_]{1,40})", text)
    name = member[1].lower() if member else WRAPPED.get(text, text)
    return name if name in MODES else None


def says_bad_mode(said: str) -> tuple[Evidence, ...]:
    """The older and the newer words of set_auto_parallel_context."""
    return (
        Evidence("MindSpore", f"ValueError: Parallel mode does not support {said}"),
        Evidence(
            "MindSpore",
            "ValueError: The context configuration parameter 'parallel_mode' only support 'stand_alone', "
            "'data_parallel', 'hybrid_parallel', 'semi_auto_parallel' and 'auto_parallel', "
            f"but got the value : {said}.",
        ),
    )


def says_pynative(mode: str) -> tuple[Evidence, ...]:
    """The older and the newer words."""
    return (
        Evidence("MindSpore", f"PyNative Only support STAND_ALONE and DATA_PARALLEL, but got:{mode}"),
        Evidence(
            "MindSpore",
            "ValueError: Pynative only supports STAND_ALONE, DATA_PARALLEL and AUTO_PARALLEL using "
            f"sharding_propagation under shard function for ParallelMode, but got {mode.upper()}.",
        ),
    )


def _strategy(layout: Layout) -> str:
    """As MindSpore prints it."""
    rows = ["(" + ", ".join(map(str, row)) + ")" for row in layout.strategy or ()]
    return "(" + ", ".join(rows) + (",)" if len(rows) == 1 else ")")


def says_odd_split(layout: Layout, number: int) -> Evidence:
    words = (
        f"The strategy is {_strategy(layout)}, the value of strategy must be the power of 2, but get {number}"
    )
    return Evidence("MindSpore", words)


def says_uneven(layout: Layout, stage: int) -> Evidence:
    """How many devices it requires depends on the operator, not on one of its inputs alone."""
    return Evidence(
        "MindSpore",
        f"The strategy is {_strategy(layout)}, it requires … devices, but the device number of this stage is "
        f"{stage}, it can not be divisible by …",
    )


def says_bad_type(layout: Layout, product: str) -> tuple[Evidence, ...]:
    """The list of the documentation, and torch_npu's words where it refuses before HCCL does."""
    listed = Evidence("HCCL documentation", f"HcclAllReduce, {product}: {', '.join(REDUCED[product])}")
    name = _TORCH_NAMES.get(layout.dtype or "")
    if name is None or layout.framework != "torch":
        return (listed,)
    return (listed, Evidence("torch_npu", f"HCCL allreduce: Unsupported data type {name}"))


def says_bad_count(number: int) -> tuple[Evidence, ...]:
    """HCCL counts the devices of one server; its message is less exact than its documentation."""
    return (
        Evidence("HCCL documentation", "Atlas training: 1, 2, 4 or 8 devices; of n servers 1n, 2n, 4n or 8n"),
        Evidence("HCCL", f"devNum[{number}] devNum must be divisible by 8, or equal to 1, 2 or 4"),
    )


@dataclass(frozen=True, slots=True)
class Scaling:
    """How a job changed since it was tuned: by which factor the global batch, and by which the learning rate.

    What the plan does not say is taken as kept: batch (of a device or of all, as batch_per says) and learning
    rate; and so is the division into tp, pp and cp.
    """

    batch: Fraction
    rate: float

    @property
    def follows(self) -> bool:
        """Whether the rate follows the batch: by the square root (usual with Adam), linearly or further."""
        if self.batch == 1:
            return True
        wanted, done = math.log(self.batch), math.log(self.rate)
        return done / wanted >= 0.48


def scaling(layout: Layout, world: int | None) -> Scaling | None:
    """None where nothing is said of it, or nothing changed."""
    before = layout.devices_before
    if before is None or world is None or before == world or not (layout.batch or layout.lr):
        return None
    batch = Fraction(layout.batch or 1, layout.batch_before or layout.batch or 1)
    if layout.batch_per == "device":
        batch *= Fraction(world, before)
    rate = layout.lr / (layout.lr_before or layout.lr) if layout.lr else 1.0
    return Scaling(batch, rate)
