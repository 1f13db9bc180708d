"""What the second round asks, worked out of what all hosts said in the first. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from doctor.engine import Facts
from doctor.facts.fabric import NPU_PINGS, plan_pings
from doctor.facts.hccn import NPU_ADDRESSES, NPU_LINKS
from doctor.facts.npu import NPUS
from doctor.model import Missing


@dataclass(frozen=True, slots=True)
class FollowUp:
    """Pings by host; and why the others have none."""

    pings: Mapping[str, tuple[tuple[int, str], ...]] = field(default_factory=dict)
    without: Mapping[str, Missing] = field(default_factory=dict)


def follow_up(facts: Facts, *, everybody: bool, also_busy: bool) -> FollowUp:
    """The pings of the fabric. Hosts whose NPUs are at work are left alone unless `also_busy`."""
    without: dict[str, Missing] = {}
    for host in facts.hosts:
        addresses, npus = facts.get(host, NPU_ADDRESSES), facts.get(host, NPUS)
        if isinstance(addresses, Missing):
            without[host] = Missing(NPU_PINGS.name, addresses.reason, addresses.absent)
        elif not also_busy and not isinstance(npus, Missing) and any(npu.processes for npu in npus):
            without[host] = Missing(
                NPU_PINGS.name, "its NPUs are at work (--on-busy run pings them all the same)"
            )
    addresses, links = (
        {host: value for host, value in facts.all(fact).items() if host not in without}
        for fact in (NPU_ADDRESSES, NPU_LINKS)
    )
    pings = plan_pings(addresses, links, everybody=everybody)
    for host in addresses.keys() - pings.keys():
        without[host] = Missing(NPU_PINGS.name, "none of its NPUs had another host's to ping")
    return FollowUp(pings, without)
