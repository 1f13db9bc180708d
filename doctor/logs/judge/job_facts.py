"""The facts about a job that are not from its logs: rank tables, the plan, measured clock differences."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from doctor.job.plan import JobPlan
    from doctor.job.ranktable import RankTable


@dataclass(frozen=True, slots=True)
class JobHost:
    """A host of the job. `ranks` is how many ranks run on it; None if unknown."""

    name: str
    addresses: tuple[str, ...] = ()
    ranks: int | None = None


@dataclass(frozen=True, slots=True)
class JobFacts:
    """Everything is optional. `hosts` are in rank order."""

    tables: tuple[RankTable, ...] = ()
    hosts: tuple[JobHost, ...] = ()
    world: int | None = None
    offsets: Mapping[str, float] = field(default_factory=dict)
    """Seconds that the clock of a host is ahead, for hosts where it was measured."""


def known_of(
    plan: JobPlan | None = None,
    tables: Iterable[RankTable] = (),
    addresses: Mapping[str, Iterable[str]] | None = None,
    offsets: Mapping[str, float] | None = None,
) -> JobFacts:
    """The facts from all sources. `addresses`: further addresses of each host, which are not in the plan."""
    more = addresses or {}
    hosts = tuple(
        JobHost(
            each.name,
            tuple(
                dict.fromkeys(
                    (each.given, *((each.data.value,) if each.data else ()), *more.get(each.name, ()))
                )
            ),
            each.ranks.value if each.ranks else None,
        )
        for each in (plan.hosts if plan else ())
    )
    world = plan.world.value if plan and all(each.ranks for each in plan.hosts) else None
    return JobFacts(tuple(tables), hosts, world, dict(offsets or {}))
