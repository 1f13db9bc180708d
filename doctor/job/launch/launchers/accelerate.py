"""accelerate launch, which starts its ranks as torchrun does but has its own options."""

from __future__ import annotations

from doctor.job.launch.launcher import Launcher, OptionNames, master_given, named, unnamed
from doctor.job.launch.launchers.torchrun import MADE_FOR_RANKS, spans_nodes

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
            **unnamed("config_file", "mixed_precision", "gpu_ids", "dynamo_backend", "rdzv_conf"),
            **unnamed("num_cpu_threads_per_process", "max_restarts", "monitor_interval", "zero_stage"),
            **unnamed("deepspeed_config_file", "deepspeed_hostfile", "gradient_accumulation_steps"),
            **unnamed("log_dir", "tee"),
        },
        flags=frozenset({"multi_gpu", "cpu", "use_deepspeed", "use_fsdp", "debug", "quiet", "m", "module"})
        | frozenset({"no_python", "same_network", "use_megatron_lm", "q", "use_cpu", "enable_cpu_affinity"}),
        shared=("nnodes", "ranks", "master_addr", "master_port"),
    ),
    master=master_given,
    goes_by_node_rank=spans_nodes,
    ignores=MADE_FOR_RANKS,
    ends_job="always",
)
