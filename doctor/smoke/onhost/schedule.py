"""Every collective that a rank of a healthy run enters, in order: what its page must show. Without torch."""

from __future__ import annotations

from doctor.smoke.onhost.bandwidthplan import bandwidth_calls
from doctor.smoke.onhost.collectiveplan import collective_calls
from doctor.smoke.onhost.page import JOINING
from doctor.smoke.onhost.shape import CellShape, CollectiveCall, ScheduledCall, numbered
from doctor.smoke.onhost.trainplan import audit_calls, train_calls


def schedule(shape: CellShape, rank: int) -> list[ScheduledCall]:
    """All collectives of one rank of a cell."""
    return numbered(
        {
            "join": join_calls(shape, rank),
            "collectives": collective_calls(shape, rank),
            "train": train_calls(shape, rank),
            "audit": audit_calls(shape),
            "bandwidth": bandwidth_calls(shape, rank),
        }
    )


def join_calls(shape: CellShape, place: int) -> list[CollectiveCall]:
    """One all-reduce of one element for each group that has more than one member."""
    last, formed = len(JOINING) - 1, [group for group in shape.groups if len(shape.members(group, place)) > 1]
    return [CollectiveCall(last, group, "all_reduce", "float32", 4) for group in formed]
