"""RANK, WORLD_SIZE and MASTER_ADDR as torch reads them, set by hand, a platform or another launcher."""

import shlex

from doctor.job.launch.forms import LaunchForm, LaunchParts
from doctor.job.launch.launcher import Launcher, RankVariables


def _assignments(start: LaunchParts) -> list[str]:
    """The lines for `eval`."""
    going = start.going
    values = {
        "MASTER_ADDR": going.address,
        "MASTER_PORT": str(going.port),
        "NNODES": str(len(going.hosts)),
        "WORLD_SIZE": str(going.world),
        "NPROC_PER_NODE": str(going.each or ""),
        "HOSTS": " ".join(going.hosts),
    }
    return [f"{name}={shlex.quote(value)}" for name, value in values.items()]


PLAIN = Launcher(
    "plain variables",
    ranks=(
        RankVariables(
            rank="RANK",
            world=("WORLD_SIZE",),
            local_rank="LOCAL_RANK",
            local_world="LOCAL_WORLD_SIZE",
            node="NODE_RANK",
            by_hand=True,
            identity=("MASTER_ADDR", "MASTER_PORT"),
        ),
    ),
    kept="NODE_RANK|NNODES|NPROC_PER_NODE",
    per_rank="NODE_RANK",
    must_agree="NNODES",
    own="((LOCAL|GROUP|ROLE|NODE)_)?(RANK|WORLD_SIZE)|MASTER_(ADDR|PORT)|NNODES",
    forms={"env": LaunchForm(_assignments)},
)
