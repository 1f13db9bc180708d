"""Which of the NPUs that a host has are the job's."""

from __future__ import annotations

import re
from collections.abc import Collection

from doctor.devices import ASCEND
from doctor.job.plan import JobPlan

(VISIBLE,) = ASCEND.visible


def chosen(plan: JobPlan) -> tuple[int, ...] | None:
    """What ASCEND_RT_VISIBLE_DEVICES names; the runtime stops reading at the first bad character."""
    text = plan.env.get(VISIBLE)
    if not text:
        return None
    good = re.match(r"[0-9]{1,3}(?:,[0-9]{1,3})*", text)
    return tuple(dict.fromkeys(int(number) for number in good[0].split(","))) if good else ()


def used(present: Collection[int], plan: JobPlan, host: str | None = None) -> tuple[int, ...]:
    """The devices that are the job's: by the variable, which counts those that are present from 0, else by
    the rank table's entry for the host.

    A container may number its devices otherwise than the table: where no more are present than the table
    names, or none that it names, all are the job's.
    """
    ordered, wanted = sorted(present), chosen(plan)
    if wanted is not None:
        return tuple(ordered[i] for i in sorted(wanted) if i < len(ordered))
    server = plan.host(host).server if host else None
    listed = server.devices if server else ()
    mine = [device for device in ordered if device in listed]
    return tuple(mine if mine and len(listed) < len(ordered) else ordered)
