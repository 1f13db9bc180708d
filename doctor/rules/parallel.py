"""What is known about parallel plans without asking any host: lists of HCCL and MindSpore. Judges nothing."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from doctor.api import Evidence, JobPlan, Place, Problem
from doctor.facts.system import Devices
from doctor.job.parallel import Layout
from doctor.smoke.result import SmokePlan

CONVERTED = ("bool", "uint8", "complex64", "complex128")
"""Types reduced as another one: torch_npu uses int32 for the first two, torch float pairs for the rest."""

DEVICES_FOUND = "devices found"
"""The source of a number of ranks that nobody gave."""
MODES = ("stand_alone", "data_parallel", "hybrid_parallel", "semi_auto_parallel", "auto_parallel")
WRAPPED = {
    "semi_auto": "semi_auto_parallel",
    "sharding_propagation": "auto_parallel",
    "recursive_programming": "auto_parallel",
}
"""Values of AutoParallel(net, parallel_mode=…) -> the equal mode of set_auto_parallel_context."""


SAYS_SOMETHING = (
    "dp",
    "tp",
    "pp",
    "cp",
    "ep",
    "heads",
    "kv_heads",
    "layers",
    "global_batch",
    "strategy",
    "mode",
    "parallel_mode",
    "dtype",
    "batch",
    "lr",
)
"""Values of a plan that mean something alone. `devices_before` has its own reason; others modify these."""


@dataclass(frozen=True, slots=True)
class ParallelJob:
    """The given parallel plan, and what is known about the devices that it is made for.

    Without a plan the layout and its source are empty: the ranks are the devices in use.
    """

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
        """The number of devices by the factors; a missing factor counts as 1."""
        return math.prod(self.layout.factors.values())

    @property
    def world(self) -> int | None:
        """The number of devices of the job: as given, as counted, or as the plan adds up."""
        counted = self.plan.ranks if self.counted else None
        return self.layout.world or counted or (self.product if self.layout.dp else None)

    @property
    def replicas(self) -> int | None:
        """The number of replicas of the model, if the devices can be divided in this way."""
        rest = self.product // (self.layout.dp or 1)
        return self.layout.dp or (self.world // rest if self.world and self.world % rest == 0 else None)

    @property
    def stage(self) -> int | None:
        """The number of devices of one pipeline stage."""
        world, pp = self.world, self.layout.pp or 1
        return world // pp if world and world % pp == 0 else None

    def found_on(self, hosts: Iterable[str]) -> tuple[Place, ...]:
        """The hosts whose number of ranks is that of their visible devices: a device may be missing there."""
        ranks = {host.name: host.ranks for host in self.plan.hosts}
        return tuple(Place(host=h) for h in hosts if (own := ranks[h]) and own.source == DEVICES_FOUND)

    def _sources(self) -> Evidence:
        sources = dict.fromkeys(host.ranks.source for host in self.plan.hosts if host.ranks)
        return Evidence("ranks of a host", ", ".join(sources))

    def wrong(self, summary: str, expected: str, actual: str, *quotes: Evidence, **more: Any) -> Problem:
        given = Evidence(self.source, str(self.layout)) if self.source else self._sources()
        return Problem(summary, expected, actual, evidence=(*quotes, given), **more)


def known_mode(text: str) -> str | None:
    """The one of MODES that a text or a member of ParallelMode stands for; None for any other text."""
    member = re.fullmatch(r"(?:\w{1,40}\.){0,3}ParallelMode\.([A-Z_]{1,40})", text)
    name = member[1].lower() if member else WRAPPED.get(text, text)
    return name if name in MODES else None


@dataclass(frozen=True, slots=True)
class Scaling:
    """How a job changed since it was tuned: the factor of the global batch, and that of the learning rate.

    What the plan does not say is taken as unchanged: the batch (per device or of all, as batch_per says), the
    learning rate, and the division into tp, pp and cp.
    """

    batch: Fraction
    rate: float

    @property
    def follows(self) -> bool:
        """Whether the rate follows the batch: by the square root (usual with Adam), linearly or faster."""
        if self.batch == 1:
            return True
        wanted, done = math.log(self.batch), math.log(self.rate)
        return done / wanted >= 0.48


def scaling(layout: Layout, world: int | None) -> Scaling | None:
    """None if the plan says nothing about it, or nothing changed."""
    before = layout.devices_before
    if before is None or world is None or before == world or not (layout.batch or layout.lr):
        return None
    batch = Fraction(layout.batch or 1, layout.batch_before or layout.batch or 1)
    if layout.batch_per == "device":
        batch *= Fraction(world, before)
    rate = layout.lr / (layout.lr_before or layout.lr) if layout.lr else 1.0
    return Scaling(batch, rate)


def not_judged(job: ParallelJob, hccl: bool) -> Iterator[str]:
    """The values of the plan that were compared with nothing, each with the reason."""
    layout, counted = job.layout, job.counted or job.layout.world
    mode = known_mode(layout.parallel_mode or "")
    if layout.factors and not counted and job.plan.ranks % job.product == 0:  # else it is a warning
        yield f"{', '.join(layout.factors)}: how many ranks the job has is only a default (--ranks-per-host)"
    if layout.ep and not job.stage:
        yield "ep: how many devices a stage has is not known"
    if lone := [
        key for key in ("heads", "kv_heads") if getattr(layout, key) and not (layout.tp or layout.dp)
    ]:
        yield f"{', '.join(lone)}: tp is not given"
    if layout.layers and not (layout.pp or layout.dp):
        yield "layers: pp is not given"
    if layout.global_batch and not job.replicas:
        yield "global_batch: how many replicas there are is not known"
    if layout.strategy and mode in ("stand_alone", "data_parallel"):
        yield f"strategy: {mode} does not use it"
    elif layout.strategy and not (job.stage and job.world):
        yield "strategy: how many devices a stage has is not known"
    if layout.mode and not layout.parallel_mode:
        yield "mode: without parallel_mode nothing depends on it"
    if layout.dtype and layout.dtype not in CONVERTED and not hccl:
        yield f"dtype: what {job.plan.backend.value.value} reduces is not known here, only what HCCL does"
    yield from _not_scaled(job)
    if layout.world and not hccl and not layout.factors and not layout.ep:
        yield "world: it is compared with dp, tp, pp and cp, and none of them is given"
    elif all(getattr(layout, key) is None for key in (*SAYS_SOMETHING, "devices_before", "world")):
        yield "there is nothing in it to compare with the devices"


_REHEARSED_AS = {
    "tp": "tensor parallelism",
    "pp": "pipeline",
    "cp": "context parallelism",
    "ep": "expert parallelism",
}


def not_rehearsed(layout: Layout, trained: SmokePlan) -> Iterator[str]:
    """The dimensions of the plan that the smoke run, whose ranks are dp x tp, did not train in."""
    for key, name in _REHEARSED_AS.items():
        if (getattr(layout, key) or 1) > 1 and not (key == "tp" and trained.tp > 1):
            yield f"the plan's {name} was not rehearsed"


def _not_scaled(job: ParallelJob) -> Iterator[str]:
    """Why batch and learning rate were compared with nothing."""
    layout = job.layout
    tuned = [key for key in ("batch", "lr") if getattr(layout, key) is not None]
    if tuned and layout.devices_before is None:
        yield f"{', '.join(tuned)}: devices_before is not given"
    elif layout.devices_before is not None and not tuned:
        yield "devices_before: neither batch nor lr is given"
    elif tuned and job.world is None:
        yield f"{', '.join(tuned)}: how many devices the job has is not known"
