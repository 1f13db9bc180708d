"""Every collective that a rank of a healthy run enters, in order: what its page must say at each position.

Pure and without torch: the controller holds pages against it, so that a collective that was skipped, added,
swapped or called with another shape is named by the rank that is off its schedule.
"""

from __future__ import annotations

from doctor.smoke.onhost.bandwidthplan import bandwidth_calls
from doctor.smoke.onhost.collectiveplan import collective_calls
from doctor.smoke.onhost.page import JOINING
from doctor.smoke.onhost.shape import CellShape, CollectiveCall, ScheduledCall, numbered
from doctor.smoke.onhost.trainplan import audit_calls, train_calls


def schedule(shape: CellShape, rank: int) -> list[ScheduledCall]:
    """The whole run of one rank of a cell."""
    return numbered(
        {
            "join": join_calls(shape),
            "collectives": collective_calls(shape, rank),
            "train": train_calls(shape, rank),
            "audit": audit_calls(shape, rank),
            "bandwidth": bandwidth_calls(shape, rank),
        }
    )


def join_calls(shape: CellShape) -> list[CollectiveCall]:
    """One element over each group that has more than one member."""
    groups = ["world"] if shape.world > 1 else []
    groups += ["tp"] if shape.tp > 1 else []
    groups += ["dp"] if shape.dp > 1 else []
    return [CollectiveCall(len(JOINING) - 1, group, "all_reduce", "float32", 4) for group in groups]
