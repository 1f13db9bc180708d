"""Which host is the head: the one that the other ranks go to first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from doctor.job.plan.interfaces import is_loopback
from doctor.job.plan.job import FIRST_HOST, RUNNING, PlannedHost
from doctor.model import Sourced

Held = Mapping[str, tuple[set[str], Mapping[str, Sequence[str]]]]
"""Host -> its addresses, and what names stand for on it."""


def find_head(
    hosts: Sequence[PlannedHost], master: Sourced[str] | None, wish: Sourced[str] | None, held: Held
) -> Sourced[str]:
    """--launch overrides the rank table, which overrides the inventory's `head`, then its variables."""
    named = _named(hosts, master, held)
    told = named if master and master.source.startswith(("--", RUNNING)) else None
    first = next((h for h in hosts if h.server and any(e.rank == 0 for e in h.server.entries)), None)
    of_table = Sourced(first.name, "rank table") if first else None
    default = Sourced(hosts[0].name if hosts else "none", FIRST_HOST)
    return told or of_table or wish or named or default


def _named(hosts: Sequence[PlannedHost], master: Sourced[str] | None, held: Held) -> Sourced[str] | None:
    """The host that goes by this name or address, that holds it, or that its name stands for."""
    if master is None:
        return None
    for host in hosts:
        if master.value in {host.name, host.given, *((host.data.value,) if host.data else ())}:
            return Sourced(host.name, master.source)
    meant = {master.value, *(a for _, names in held.values() for a in names.get(master.value, ()))}
    meant = {address for address in meant if not is_loopback(address)}
    holders = [host for host, (own, _) in held.items() if own & meant]
    return Sourced(holders[0], master.source) if len(holders) == 1 else None
