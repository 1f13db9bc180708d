"""Which NPUs of a host belong to the job."""

import re
from collections.abc import Collection

from doctor.devices import ASCEND
from doctor.job.plan import JobPlan, PlannedHost

(VISIBLE,) = ASCEND.visible


def chosen(plan: JobPlan) -> tuple[int, ...] | None:
    """The devices in ASCEND_RT_VISIBLE_DEVICES; the runtime stops reading at the first bad character."""
    text = plan.env.get(VISIBLE)
    if not text:
        return None
    good = re.match(r"[0-9]{1,3}(?:,[0-9]{1,3})*", text)
    return tuple(dict.fromkeys(int(number) for number in good[0].split(","))) if good else ()


def used(present: Collection[int], plan: JobPlan, host: str | None = None) -> tuple[int, ...]:
    """The devices of the job: those that the variable names, which counts the present ones from 0, else those
    in the rank table's entry for the host.

    A container may number its devices differently from the table: if no more devices are present than the
    table names, or none of those that it names, all of them belong to the job.
    """
    return tuple(sorted(in_rank_order(present, plan, host)))


def in_rank_order(present: Collection[int], plan: JobPlan, host: str | None = None) -> tuple[int, ...]:
    """The same devices, starting with that of the host's first rank."""
    ordered, wanted = sorted(present), chosen(plan)
    if wanted is not None:
        return tuple(ordered[i] for i in wanted if i < len(ordered))
    listed = _of_table(plan.host(host)) if host else ()
    mine = [device for device in listed if device in ordered]
    return tuple(mine if mine and len(listed) < len(ordered) else ordered)


def _of_table(host: PlannedHost) -> tuple[int, ...]:
    entries = host.server.entries if host.server else ()
    by_rank = sorted(entries, key=lambda entry: (entry.rank is None, entry.rank or 0))
    return tuple(dict.fromkeys(entry.device for entry in by_rank if entry.device is not None))


def as_torch_counts(present: Collection[int], mine: Collection[int], plan: JobPlan) -> tuple[int, ...]:
    """The numbers that torch gives to these devices: it counts the visible ones from 0."""
    if chosen(plan) is not None:
        return tuple(range(len(mine)))
    ordered = sorted(present)
    return tuple(ordered.index(device) for device in mine)
