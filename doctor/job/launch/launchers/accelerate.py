"""accelerate launch, which starts its ranks as torchrun does but has its own options."""

from collections.abc import Mapping, Sequence

from doctor.job.launch.launcher import Launcher, master_given, options_of
from doctor.job.launch.launchers.torchrun import MADE_FOR_RANKS, STATIC, spans_nodes

_IN_CONFIG = ("num_machines", "num_processes", "machine_rank", "main_process_ip", "main_process_port")


def _configured(config: Mapping[str, object]) -> Sequence[tuple[str, object]] | None:
    """What `accelerate config` wrote."""
    if not {"compute_environment", "distributed_type", "num_processes"} & config.keys():
        return None
    return [(name, config[name]) for name in _IN_CONFIG if config.get(name) not in (None, "")]


ACCELERATE = Launcher(
    "accelerate",
    commands=("accelerate",),
    modules=("accelerate.commands.launch",),
    subcommand="launch",
    options=options_of(
        "accelerate",
        shared=("nnodes", "ranks", "master_addr", "master_port"),
        defaults={"master_port": STATIC},
        file="config_file",
    ),
    master=master_given,
    goes_by_node_rank=spans_nodes,
    configured=_configured,
    ignores=MADE_FOR_RANKS,
    on_hosts=(
        *("--num_machines={nnodes}", "--machine_rank={node_rank}"),
        *("--main_process_ip={master_addr}", "--main_process_port={master_port}"),
    ),
    ends_job="always",
    framework="torch",
)
