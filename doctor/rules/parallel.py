"""What is known about parallel plans without asking any host: lists of HCCL and MindSpore. Judges nothing."""

import math
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
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


_REHEARSED_AS = {
    "tp": "tensor parallelism",
    "pp": "pipeline",
    "cp": "context parallelism",
    "ep": "expert parallelism",
}


def not_rehearsed(layout: Layout, trained: SmokePlan) -> Iterator[str]:
    """The dimensions of the plan without which the smoke run trained, with groups of them or without."""
    formed = {**trained.layout, "tp": trained.tp}
    for key, name in _REHEARSED_AS.items():
        if (getattr(layout, key) or 1) > 1 and formed.get(key, 1) == 1:
            yield f"the plan's {name} was not rehearsed"
        elif formed.get(key, 1) > 1 and key not in (("tp", "pp") if "micro" in formed else ("tp",)):
            yield f"the groups of the plan's {name} were tried, and the training did without"
