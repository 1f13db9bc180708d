"""RANK, WORLD_SIZE and MASTER_ADDR as torch reads them, set by hand, a platform or another launcher."""

import shlex

from doctor.job.launch.forms import LaunchForm, LaunchParts
from doctor.job.launch.launcher import launcher_of


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


PLAIN = launcher_of("plain variables", forms={"env": LaunchForm(_assignments)})
