"""accelerate launch, which starts its ranks as torchrun does but has its own options."""

from collections.abc import Mapping, Sequence

from doctor.job.launch.launcher import Launcher, OptionNames, master_given, named, unnamed
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
    options=OptionNames(
        values={
            "num_machines": "nnodes",
            "machine_rank": "node_rank",
            "main_process_ip": "master_addr",
            "main_process_port": "master_port",
            "num_processes": "ranks",
            **named("rdzv_backend"),
            **unnamed(
                "config_file",
                "role",
                "rdzv_timeout",
                "num_gpus",
                "mixed_precision",
                "gpu_ids",
                "dynamo_backend",
                "rdzv_conf",
            ),
            **unnamed("num_cpu_threads_per_process", "max_restarts", "monitor_interval", "zero_stage"),
            **unnamed("deepspeed_config_file", "deepspeed_hostfile", "gradient_accumulation_steps"),
            **unnamed("log_dir", "tee"),
        },
        flags=frozenset({"multi_gpu", "cpu", "use_deepspeed", "use_fsdp", "debug", "quiet", "m", "module"})
        | frozenset({"no_python", "same_network", "use_megatron_lm", "q", "use_cpu", "enable_cpu_affinity"}),
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
