"""accelerate launch, which starts its ranks as torchrun does but has its own options."""

from collections.abc import Mapping, Sequence

from doctor.job.launch.launcher import launcher_of, master_given, options_of
from doctor.job.launch.launchers.torchrun import STATIC, spans_nodes

_IN_CONFIG = ("num_machines", "num_processes", "machine_rank", "main_process_ip", "main_process_port")


def _configured(config: Mapping[str, object]) -> Sequence[tuple[str, object]] | None:
    """What `accelerate config` wrote."""
    if not {"compute_environment", "distributed_type", "num_processes"} & config.keys():
        return None
    return [(name, config[name]) for name in _IN_CONFIG if config.get(name) not in (None, "")]


ACCELERATE = launcher_of(
    "accelerate",
    options=options_of(
        "accelerate",
        shared=("nnodes", "ranks", "master_addr", "master_port"),
        defaults={"master_port": STATIC},
        file="config_file",
    ),
    master=master_given,
    goes_by_node_rank=spans_nodes,
    configured=_configured,
)
